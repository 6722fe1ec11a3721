package org.apache.spark.sql.execution.pyzorder

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BindReferences, BoundReference, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.physical.BroadcastPartitioning
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, LogicalQueryStage}
import org.apache.spark.sql.execution.joins.{HashJoin, HashedRelation, HashedRelationBroadcastMode}

/**
 * The broadcast side of a hash join. All of its rows are known, except those whose key is null. The
 * class is in Spark's package because Spark's hash tables are private to that package.
 */
final class BuildSide private (stage: BroadcastQueryStageExec, mode: HashedRelationBroadcastMode) {

  /** The broadcast, which is the same object for all sides that reuse it. */
  def exchange: AnyRef = stage.broadcast

  /** Whether at most this many rows were broadcast; false if their number is unknown. */
  def hasAtMost(rows: Long): Boolean = stage.getRuntimeStatistics.rowCount.exists(_ <= rows)

  /**
   * The values of the join's keys. Each combination occurs at least once. None if the hash table
   * was not built from these keys.
   *
   * Spark packs several integral keys into one LONG, which is then the table's key. Whether or not
   * the keys are packed, the table's key is computed from `keys`, and packing loses no information.
   * All rows of an entry therefore have the same `keys`, and it is enough to compute the keys of
   * the first row.
   *
   * Values that point into the memory of Spark's rows are copied.
   */
  def valuesOf(keys: Seq[Expression]): Option[Iterator[Seq[Any]]] =
    if (!madeBy(keys)) None
    else stage.broadcast.relationFuture.get().value match {
      case shared: HashedRelation =>
        val table = shared.asReadOnlyCopy() // get() writes into a row that belongs to its table
        val bound = keys.map(BindReferences.bindReference(_, stage.output))
        Some(table.keys().map { key =>
          val row = table.get(key).next()
          bound.map(expression => InternalRow.copyValue(expression.eval(row)))
        })
      case _ => None
    }

  private def madeBy(keys: Seq[Expression]): Boolean = {
    val bound = HashJoin.rewriteKeyExpr(keys).map(BindReferences.bindReference(_, stage.output))
    bound.map(comparable) == mode.key.map(comparable)
  }

  /** Ignores nullability, which the optimizer may have changed since the broadcast was planned. */
  private def comparable(key: Expression): Expression =
    key.transform { case b: BoundReference => b.copy(nullable = true) }.canonicalized
}

object BuildSide {

  /** Matches materialized broadcasts, except the null-aware ones that Spark uses for NOT IN. */
  def unapply(plan: LogicalPlan): Option[BuildSide] = plan match {
    case LogicalQueryStage(_, stage: BroadcastQueryStageExec) if stage.isMaterialized =>
      stage.broadcast.outputPartitioning match {
        case BroadcastPartitioning(mode: HashedRelationBroadcastMode) if !mode.isNullAware =>
          Some(new BuildSide(stage, mode))
        case _ => None
      }
    case _ => None
  }
}
