package io.pyzorder.skipping.joins

import org.apache.spark.sql.catalyst.expressions.{Expression, SubqueryExpression}
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.pyzorder.BuildSide

import io.pyzorder.skipping.predicate.{FilterColumn, JoinKeyFilter, KeyValues}

/**
 * The keys of a join's broadcast side. Their values are collected once for all scans that use them.
 *
 * @param build   the broadcast side, as it was in the plan when this object was created
 * @param built   the keys on the broadcast side
 * @param maxKeys the maximum number of distinct values; if there are more, only the least and the
 *                greatest value are used
 */
private[joins] final class BroadcastKeys(
    val build: BuildSide,
    built: Seq[Expression],
    maxKeys: Int)
    extends KeySource {

  private val usable: Set[Int] =
    if (!built.forall(k => k.deterministic && !SubqueryExpression.hasSubquery(k))) Set.empty
    else built.indices.filter(i => FilterColumn.isOrdered(built(i).dataType)).toSet

  /**
   * Whether the scan's copy of the broadcast side is certain to have the same rows as the join's
   * copy. This is always true for a stage, because a stage is not executed again.
   */
  lazy val isRepeatable: Boolean = build.isStage || RepeatableRows(build.rows)

  override def fit(ordinal: Int, column: Expression): Boolean =
    usable(ordinal) && built(ordinal).dataType == column.dataType

  /**
   * The filters derived from the keys. A key is left out if no filter can be derived from it.
   *
   * @param executed the broadcast side in the plan that is executed
   */
  def filters(executed: BuildSide, wanted: Seq[ScanKey]): Seq[JoinKeyFilter] =
    for {
      key <- wanted
      found <- values(executed).get(key.ordinal)
      text = s"${name(key.ordinal)} ($found after ${executed.millis} ms)"
      filter <- JoinKeyFilter.of(key.column, found, text)
    } yield filter

  /** The key, after the name of the table if the broadcast side reads exactly one. */
  private def name(ordinal: Int): String = {
    val key = JoinedKey.displayed(built(ordinal)).sql
    val tables = build.rows.collectLeaves().collect { case scan: FileSourceScanExec =>
      scan.tableIdentifier.fold(scan.relation.location.rootPaths.head.getName)(_.table)
    }
    if (tables.length == 1) s"${tables.head}.$key" else key
  }

  private var collected: Option[Map[Int, KeyValues]] = None

  private def values(executed: BuildSide): Map[Int, KeyValues] = synchronized {
    if (collected.isEmpty)
      collected =
        executed.valuesOf(built, BroadcastKeys.RowsPerKey * maxKeys).map(summarized)
    collected.getOrElse(Map.empty)
  }

  private def summarized(rows: Iterator[Seq[Any]]): Map[Int, KeyValues] = {
    val builders = usable.toSeq.map(i => i -> new KeyValues.Builder(built(i).dataType, maxKeys))
    rows.foreach(row => builders.foreach { case (i, builder) => builder.add(row(i)) })
    builders.map { case (i, builder) => i -> builder.result }.toMap
  }
}

private object BroadcastKeys {

  /** The maximum number of rows, per allowed key, that the driver scans to collect the keys. */
  val RowsPerKey = 100L
}
