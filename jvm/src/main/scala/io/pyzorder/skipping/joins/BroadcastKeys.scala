package io.pyzorder.skipping.joins

import org.apache.spark.sql.catalyst.expressions.{AttributeSeq, BindReferences, Expression}
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.pyzorder.BuildSide

import io.pyzorder.skipping.predicate.{FilterColumn, JoinKeyFilter, KeyValues}

/**
 * The values that expressions have in the rows of a broadcast side. They are collected once for all
 * scans that use them.
 *
 * Other joins may restrict the rows: a row does not affect the query's result if its value in a
 * restriction's column is not among the restriction's keys. No scan needs such a row, so its values
 * are left out. For example, in `sales JOIN days ON day JOIN weeks ON week`, `sales` need only be
 * read for days in one of the weeks.
 *
 * @param build        the broadcast side, as it was in the plan when this object was created
 * @param built        the expressions over the rows of the broadcast side
 * @param maxKeys      the maximum number of values; if there are more, they are combined into this
 *                     many ranges
 * @param restrictions keys of other joins, in terms of the broadcast side's columns
 * @param alternatives sources whose values for their first key are added to the values of this
 *                     source's first key; if there are any, each source has only one key
 */
private[joins] final class BroadcastKeys(
    val build: BuildSide,
    private val built: Seq[Expression],
    maxKeys: Int,
    val restrictions: Seq[JoinedKey[BroadcastKeys]] = Nil,
    val alternatives: Seq[BroadcastKeys] = Nil)
    extends KeySource[BroadcastKeys] {

  private val usable: Set[Int] =
    if (!built.forall(key => key.deterministic && !FilterColumn.hasSubquery(key))) Set.empty
    else built.indices.filter(i => FilterColumn.isOrdered(built(i).dataType)).toSet

  /** The other sources whose values are needed. */
  private def others: Seq[BroadcastKeys] = restrictions.map(_.from) ++ alternatives

  /**
   * The plans that must be executed before the values are known. The first is the broadcast side
   * itself.
   */
  def sides: Seq[SparkPlan] = build.side +: others.flatMap(_.sides)

  /**
   * Whether the scan's copy of the broadcast side is certain to have the same rows as the join's
   * copy. This is always true for a stage, because a stage is not executed again.
   */
  lazy val isRepeatable: Boolean =
    (build.isStage || RepeatableRows(ShuffledKeys.rowsOf(build))) &&
      others.forall(_.isRepeatable)

  /**
   * This source with only the restrictions that `isKept` accepts. The same applies to the
   * alternatives.
   */
  def restrictedIf(isKept: JoinedKey[BroadcastKeys] => Boolean): BroadcastKeys = {
    val kept = restrictions.filter(isKept)
    val others = alternatives.map(_.restrictedIf(isKept))
    if (kept.size == restrictions.size && others.zip(alternatives).forall { case (a, b) => a eq b })
      this
    else new BroadcastKeys(build, built, maxKeys, kept, others)
  }

  /**
   * How the values are computed from the rows of the sides. Does not depend on which copies of the
   * sides are executed.
   */
  def values: BroadcastKeys.Values = {
    def bound(expression: Expression): Expression =
      BindReferences.bindReference(
        expression, AttributeSeq(build.side.output), allowFailures = true).canonicalized
    BroadcastKeys.Values(
      built.map(bound), maxKeys,
      restrictions.map(key => (bound(key.column), key.ordinal, key.from.values)),
      alternatives.map(_.values))
  }

  override def or(ordinal: Int, other: BroadcastKeys, ofOther: Int): BroadcastKeys = {
    val (mine, others) = (only(ordinal), other.only(ofOther))
    new BroadcastKeys(build, mine.built, maxKeys, restrictions, mine.alternatives :+ others)
  }

  private def only(ordinal: Int): BroadcastKeys =
    if (built.size == 1) this
    else new BroadcastKeys(build, Seq(built(ordinal)), maxKeys, restrictions)

  /**
   * This source, with each broadcast side replaced by another copy of it. A restriction is dropped
   * if one of its sides has no copy. None if any other side has no copy.
   */
  def movedTo(copies: SparkPlan => Option[SparkPlan]): Option[BroadcastKeys] =
    for {
      copied <- copies(build.side).flatMap(BuildSide.unapply)
      moved = alternatives.flatMap(_.movedTo(copies)) if moved.size == alternatives.size
    } yield {
      val kept =
        restrictions.flatMap(key => key.from.movedTo(copies).map(to => key.copy(from = to)))
      new BroadcastKeys(copied, built, maxKeys, kept, moved)
    }

  override def fit(ordinal: Int, column: Expression): Boolean =
    usable(ordinal) && built(ordinal).dataType == column.dataType &&
      alternatives.forall(_.fit(0, column))

  /**
   * The filters derived from the keys. A key is left out if no filter can be derived from it.
   *
   * @param executed the sides in the plan that is executed
   */
  def filters(executed: Seq[BuildSide], wanted: Seq[ScanKey]): Seq[JoinKeyFilter] =
    for {
      key <- wanted
      found <- values(executed).get(key.ordinal)
      text = s"${name(key.ordinal)} ($found after ${executed.map(_.millis).max} ms)"
      filter <- JoinKeyFilter.of(key.column, found, text)
    } yield filter

  /** The key, preceded by the table's name if the broadcast side reads exactly one table. */
  private def name(ordinal: Int): String = {
    val key = JoinedKey.displayed(built(ordinal)).sql
    val tables =
      ShuffledKeys.rowsOf(build).collectLeaves().collect { case scan: FileSourceScanExec =>
        scan.tableIdentifier.fold(scan.relation.location.rootPaths.head.getName)(_.table)
      }
    val own = if (tables.length == 1) s"${tables.head}.$key" else key
    val of = restrictions.map(r => r.from.name(r.ordinal)).distinct
    val whole = if (of.isEmpty) own else s"$own of ${of.mkString(" and ")}"
    (whole +: alternatives.map(_.name(0))).distinct.mkString(" or ")
  }

  private var collected: Option[Map[Int, KeyValues]] = None

  private def values(executed: Seq[BuildSide]): Map[Int, KeyValues] = synchronized {
    if (collected.isEmpty) {
      val (ofRestrictions, ofAlternatives) = sidesOf(executed.tail).splitAt(restrictions.size)
      collected = executed.head
        .valuesOf(
          built ++ restrictions.map(_.column),
          build.side.output,
          BroadcastKeys.RowsPerKey * maxKeys)
        .flatMap { rows =>
          val more = alternatives.zip(ofAlternatives).map { case (a, sides) =>
            a.values(sides).get(0)
          }
          if (more.forall(_.isDefined))
            Some(summarized(rows.filter(matching(ofRestrictions)), more.flatten))
          else None
        }
    }
    if (collected.isEmpty) collected = Some(Map.empty) // other scans must not wait again
    collected.get
  }

  /** The sides of each of the other sources. */
  private def sidesOf(executed: Seq[BuildSide]): Seq[Seq[BuildSide]] = {
    val starts = others.scanLeft(0)(_ + _.sides.size)
    starts.zip(starts.tail).map { case (start, end) => executed.slice(start, end) }
  }

  /**
   * Returns a test of whether a row satisfies all restrictions. The last values in the row are
   * those of the restrictions' columns.
   */
  private def matching(executed: Seq[Seq[BuildSide]]): Seq[Any] => Boolean = {
    val allowed = restrictions.zip(executed).map { case (key, sides) =>
      key.from.values(sides).get(key.ordinal).map(_.test(key.column.dataType))
    }
    row =>
      allowed.zip(row.drop(built.size)).forall { case (test, value) => test.forall(_(value)) }
  }

  /**
   * @param more the first-key values of the alternative sources, which are added to the values of
   *             this source's first key
   */
  private def summarized(rows: Iterator[Seq[Any]], more: Seq[KeyValues]): Map[Int, KeyValues] = {
    val builders = usable.toSeq.map(i => i -> new KeyValues.Builder(built(i).dataType, maxKeys))
    builders.foreach { case (_, builder) => more.foreach(builder.addAll) }
    rows.foreach(row => builders.foreach { case (i, builder) => builder.add(row(i)) })
    builders.map { case (i, builder) => i -> builder.result }.toMap
  }
}

private[joins] object BroadcastKeys {

  /** A description of a source in which the columns of a side are denoted by their positions. */
  final case class Values(
      built: Seq[Expression],
      maxKeys: Int,
      restrictions: Seq[(Expression, Int, Values)],
      alternatives: Seq[Values])

  /** The maximum number of rows, per allowed key, that the driver scans to collect the keys. */
  val RowsPerKey = 100L
}
