package io.pyzorder.skipping.joins

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.expressions.{DynamicPruning, Expression, NamedExpression}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.ExchangeQueryStageExec
import org.apache.spark.sql.execution.aggregate.{
  BaseAggregateExec, HashAggregateExec, ObjectHashAggregateExec, SortAggregateExec
}
import org.apache.spark.sql.execution.exchange.{
  BroadcastExchangeLike, ENSURE_REQUIREMENTS, Exchange, ShuffleExchangeLike
}
import org.apache.spark.sql.execution.joins.{BaseJoinExec, BroadcastHashJoinExec}

import io.pyzorder.skipping.files.ZOrderFileIndex
import io.pyzorder.skipping.plan.SkippingScanExec
import io.pyzorder.skipping.predicate.FilterColumn

/**
 * Passes the keys of joins down a plan, to the scans whose rows they restrict.
 *
 * @param whole  the plan
 * @param shared equal exchanges, in canonical form, and the keys that are passed into all of them
 */
private[joins] abstract class KeyPushdown[Source <: KeySource[Source]](
    whole: SparkPlan,
    shared: KeyPushdown.Shared[Source]) {

  private val exchanges = ArrayBuffer.empty[PassedExchange]

  /** An exchange before and after keys were passed into it, and the keys that could be passed. */
  private case class PassedExchange(
      before: SparkPlan,
      after: SparkPlan,
      wanted: Seq[JoinedKey[Source]])

  /** Whether passing keys to scans may have made equal exchanges differ. */
  protected var isSplitting: Boolean = false

  /** The plan, with the keys passed to its scans. */
  def result: SparkPlan = withKeys(whole, Nil)

  /** The exchanges that were equal and now differ, with the keys that they can share. */
  def split: KeyPushdown.Shared[Source] =
    if (!isSplitting) Map.empty
    else exchanges.groupBy(_.before.canonicalized).collect {
      case (before, same) if same.map(_.after.canonicalized).distinct.size > 1 =>
        before -> (if (shared.contains(before)) Nil else common(same.toSeq))
    }

  /**
   * For each column of equal exchanges, the union of the keys that could be passed into them. Each
   * exchange may then return rows that are not needed above it, but all of them return the same
   * rows. No keys are passed for a column if one of the exchanges needs the rows for all keys.
   */
  private def common(same: Seq[PassedExchange]): Seq[(Int, JoinedKey[Source])] =
    for {
      column <- same.head.before.output.indices
      keys = same.map { one =>
        best(one.wanted.filter(_.column.semanticEquals(one.before.output(column))))
      }
      if keys.forall(_.isDefined)
    } yield column -> keys.flatten.reduce(_ or _)

  /** The most useful of several keys for the same column. */
  protected def best(keys: Seq[JoinedKey[Source]]): Option[JoinedKey[Source]] = keys.headOption

  /** The exchange with the keys that have been passed into it. Other plans are returned as is. */
  protected def passed(plan: SparkPlan): SparkPlan =
    exchanges.find(_.before eq plan).fold(plan)(_.after)

  /** The join, with the keys of joins above it and its own keys passed to its sides. */
  protected def joined(
      join: BaseJoinExec,
      ofLeft: Seq[JoinedKey[Source]],
      ofRight: Seq[JoinedKey[Source]]): SparkPlan

  /** The scan, which skips the files that contain none of these keys. */
  protected def scanned(
      scan: SparkPlan,
      files: FileSourceScanExec,
      wanted: Seq[JoinedKey[Source]]): SparkPlan

  /**
   * A copy of the plan in which scans skip the files that contain none of the keys in `wanted`.
   * These keys are expressed in the plan's own columns, and may be pushed below:
   * - a filter, projection, sort or exchange, which treats each row independently;
   * - a union, whose branches have their own names for the columns;
   * - an aggregate, if the key consists of its grouping expressions: all rows of a group have the
   *   same key, so a group is dropped as a whole. This is not true of collated strings, because
   *   different strings can be in the same group;
   * - a join (see `fromAbove`).
   *
   * All expressions must be deterministic, because the value of rand() for a row depends on the
   * rows before it. Keys are not pushed below anything else: the results of LIMIT, windows, samples
   * and observed metrics depend on which other rows exist.
   */
  private def withKeys(plan: SparkPlan, wanted: Seq[JoinedKey[Source]]): SparkPlan = plan match {
    case filter: FilterExec if filter.condition.deterministic =>
      filter.withNewChildren(Seq(below(filter.child, wanted)))
    case project: ProjectExec if project.projectList.forall(_.deterministic) =>
      project.withNewChildren(Seq(below(project.child, defined(wanted, project.projectList))))
    case _: SortExec | _: ColumnarToRowTransition | _: RowToColumnarTransition =>
      plan.withNewChildren(Seq(below(plan.children.head, wanted)))
    case exchange: Exchange =>
      if (isStage(exchange) || isFinal(exchange)) plan else exchanged(exchange, wanted)
    case union: UnionExec if union.output.map(_.exprId).distinct.size == union.output.size =>
      union.withNewChildren(union.children.map { child =>
        below(child, wanted.map(_.below(union.output.map(_.exprId).zip(child.output).toMap)))
      })
    case aggregate @ (_: HashAggregateExec | _: ObjectHashAggregateExec | _: SortAggregateExec) =>
      aggregated(aggregate.asInstanceOf[BaseAggregateExec], wanted)
    case join: BaseJoinExec =>
      val (ofLeft, ofRight) = fromAbove(join, wanted)
      joined(join, ofLeft, ofRight)
    case scan @ SkippingScanExec(files: FileSourceScanExec) =>
      scanned(scan, files, usable(files, wanted))
    case files: FileSourceScanExec => scanned(files, files, usable(files, wanted))
    case keyed: ScanWithKeysExec =>
      keyed.files.fold(plan)(files => scanned(keyed, files, usable(files, wanted)))
    case other => other.mapChildren(withKeys(_, Nil))
  }

  /**
   * True if keys must not be passed to a scan through an exchange, because the exchange must remain
   * equal to an exchange of a subquery. If the rows of a CTE are not deterministic, the query and
   * its subqueries must use the same execution of the CTE, or they would see different rows.
   */
  protected def keepsExchanges(index: ZOrderFileIndex): Boolean =
    index.isShared && !index.plan.isDeterministic

  private def usable(
      files: FileSourceScanExec,
      wanted: Seq[JoinedKey[Source]]): Seq[JoinedKey[Source]] =
    if (wanted.nonEmpty && ScanWithKeysExec.indexOf(files).exists(keepsExchanges))
      wanted.filterNot(_.isWaited)
    else wanted

  /**
   * Passes the keys that refer only to columns of the child. Several pairs of equal keys may lead
   * to the same key. It is passed only once, because the number of copies would otherwise double at
   * every join.
   */
  protected def below(child: SparkPlan, wanted: Seq[JoinedKey[Source]]): SparkPlan = {
    val passed = mutable.HashSet.empty[JoinedKey[Source]]
    withKeys(child,
      wanted.filter(key =>
        key.column.references.nonEmpty && key.column.references.subsetOf(child.outputSet) &&
          passed.add(key.copy(column = key.column.canonicalized))))
  }

  private def defined(
      wanted: Seq[JoinedKey[Source]],
      columns: Seq[NamedExpression]): Seq[JoinedKey[Source]] = {
    val named = JoinedKey.definitions(columns)
    wanted.map(_.below(named))
  }

  private def aggregated(
      aggregate: BaseAggregateExec,
      wanted: Seq[JoinedKey[Source]]): SparkPlan = {
    val groups = aggregate.groupingExpressions.collect {
      case group if FilterColumn.isOrdered(group.dataType) => group.exprId
    }.toSet
    val ofGroups =
      if (!aggregate.expressions.forall(_.deterministic)) Nil
      else defined(wanted, aggregate.resultExpressions)
        .filter(_.column.references.forall(a => groups(a.exprId)))
    aggregate.withNewChildren(
      Seq(below(aggregate.child, defined(ofGroups, aggregate.groupingExpressions))))
  }

  /**
   * Keys of joins above an exchange delay the stage that ends with the exchange. They are not
   * passed into a broadcast if Spark prunes partitions dynamically, because Spark could then no
   * longer recognize the broadcast whose keys it uses for pruning. Nor are they passed into a CTE
   * whose rows are not deterministic: Spark adds a repartition to such a CTE, and all references to
   * the CTE must use the same execution of it.
   */
  private def exchanged(exchange: Exchange, wanted: Seq[JoinedKey[Source]]): SparkPlan = {
    val mayPass = wanted.nonEmpty &&
      !(exchange.isInstanceOf[BroadcastExchangeLike] && prunesPartitions) &&
      !isRandomRepartition(exchange) && !isReused(exchange)
    val possible = if (mayPass) wanted.map(_.copy(isWaited = true)) else Nil
    val ofAll = if (shared.isEmpty) None else shared.get(exchange.canonicalized)
    val passed = ofAll.fold(possible)(_.map { case (column, key) =>
      key.copy(column = exchange.output(column))
    })
    val result = exchange.withNewChildren(Seq(below(exchange.child, passed)))
    exchanges += PassedExchange(exchange, result, possible)
    result
  }

  /**
   * Whether the plan contains a stage for an equal exchange. Adaptive execution reuses the stage,
   * which costs nothing, as long as the exchanges remain equal.
   */
  private def isStage(exchange: Exchange): Boolean =
    stages.nonEmpty && stages(exchange.canonicalized)

  private lazy val stages: Set[SparkPlan] =
    whole.collect { case stage: ExchangeQueryStageExec =>
      Seq(stage.canonicalized, stage.plan.canonicalized)
    }.flatten.toSet

  /** Whether Spark can reuse an exchange of another plan in place of this one. */
  protected def isReused(exchange: Exchange): Boolean = false

  /** Whether the exchange must not be changed. */
  protected def isFinal(exchange: Exchange): Boolean = false

  private def isRandomRepartition(exchange: Exchange): Boolean = exchange match {
    case shuffle: ShuffleExchangeLike =>
      shuffle.shuffleOrigin != ENSURE_REQUIREMENTS &&
      shuffle.exists(_.expressions.exists(!_.deterministic))
    case _ => false
  }

  private lazy val prunesPartitions: Boolean =
    whole.exists(_.expressions.exists(_.exists(_.isInstanceOf[DynamicPruning])))

  /**
   * Given the keys of joins above a join, returns the keys that may be pushed to the join's left
   * side, and those that may be pushed to its right side. Keys may be pushed to a side whose rows
   * contribute to the result independently of each other: either side of an inner join, the left
   * side of a left outer, semi, anti or existence join, and the right side of a right outer join.
   *
   * If such a key is also a key of this join, both sides have equal keys in every pair of
   * matching rows. On the other side of the join, a row affects only the rows that it matches. If
   * its key equals no key of the join above, neither do the keys of these rows, so the join above
   * drops them whether or not they match. This does not apply to a null-aware anti join (NOT IN),
   * in which a null on the right side affects every row.
   */
  private def fromAbove(
      join: BaseJoinExec,
      wanted: Seq[JoinedKey[Source]]): (Seq[JoinedKey[Source]], Seq[JoinedKey[Source]]) = {
    def toRight = equal(wanted, join.leftKeys, join.rightKeys)
    def toLeft = equal(wanted, join.rightKeys, join.leftKeys)
    join.joinType match {
      case _ if !isDeterministic(join) => (Nil, Nil)
      case _: InnerLike => (wanted ++ toLeft, wanted ++ toRight)
      case LeftAnti if KeyPushdown.isNullAware(join) => (wanted, Nil)
      case LeftSemi | LeftAnti | LeftOuter | _: ExistenceJoin => (wanted, toRight)
      case RightOuter => (toLeft, wanted)
      case _ => (Nil, Nil)
    }
  }

  private def equal(
      wanted: Seq[JoinedKey[Source]],
      keys: Seq[Expression],
      others: Seq[Expression]): Seq[JoinedKey[Source]] =
    for {
      key <- wanted
      (mine, other) <- keys.zip(others)
      if JoinedKey.equal(mine, key.column)
    } yield key.copy(column = other)

  protected def isDeterministic(join: BaseJoinExec): Boolean =
    (join.leftKeys ++ join.rightKeys ++ join.condition).forall(_.deterministic)
}

private[joins] object KeyPushdown {

  /**
   * Whether the left and the right side of a join may each be pruned by the keys of the other side.
   * A side may be pruned if its unmatched rows do not affect the result:
   * - inner, left semi: both sides. A right row of a left semi join only matters to the left rows
   *   that it matches;
   * - left outer, left anti, existence: the right side. A left row without a match is in the
   *   result;
   * - right outer: the left side.
   * A null-aware anti join (NOT IN) also depends on right rows that match nothing.
   */
  def prunable(join: BaseJoinExec): (Boolean, Boolean) = join.joinType match {
    case _ if isNullAware(join) => (false, false)
    case _: InnerLike | LeftSemi => (true, true)
    case LeftOuter | LeftAnti | _: ExistenceJoin => (false, true)
    case RightOuter => (true, false)
    case _ => (false, false)
  }

  private def isNullAware(join: BaseJoinExec): Boolean = join match {
    case hash: BroadcastHashJoinExec => hash.isNullAwareAntiJoin
    case _ => false
  }

  /**
   * For each exchange, in canonical form, the keys that are passed into it, each with the position
   * of the column that must equal the key.
   */
  type Shared[Source <: KeySource[Source]] = Map[SparkPlan, Seq[(Int, JoinedKey[Source])]]

  /**
   * Passes keys down the plan. Equal exchanges get the same keys and therefore remain equal. Spark
   * executes equal exchanges only once, which saves more than different keys would.
   */
  @scala.annotation.tailrec
  def withoutSplits[Source <: KeySource[Source]](
      pushdown: Shared[Source] => KeyPushdown[Source],
      shared: Shared[Source] = Map.empty[SparkPlan, Seq[(Int, JoinedKey[Source])]]): SparkPlan = {
    val pass = pushdown(shared)
    val result = pass.result
    val split = pass.split
    if (split.isEmpty) result else withoutSplits(pushdown, shared ++ split)
  }
}
