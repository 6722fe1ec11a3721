package org.apache.spark.sql.execution.pyzorder

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BindReferences, BoundReference, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.physical.BroadcastPartitioning
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, LogicalQueryStage}
import org.apache.spark.sql.execution.joins.{HashJoin, HashedRelation, HashedRelationBroadcastMode}

/**
 * The side of a hash join that has been broadcast: all of its rows are known, those aside whose key
 * is null. Spark keeps its hash tables to its own packages, therefore this class lives in one.
 */
final class BuildSide private (stage: BroadcastQueryStageExec, mode: HashedRelationBroadcastMode) {

  /** The broadcast itself; two sides that reuse one broadcast have the same. */
  def exchange: AnyRef = stage.broadcast

  /** Whether at most so many rows were broadcast; an unknown number is too many. */
  def hasAtMost(rows: Long): Boolean = stage.getRuntimeStatistics.rowCount.exists(_ <= rows)

  /**
   * The values of the join's keys, each combination once or more; None: the hash table was not made
   * by these keys.
   *
   * Spark packs several integral keys in one LONG and calls that the key. Packed or not, the rows
   * of one entry agree in `keys`, because `keys` make the table's key and packing loses nothing:
   * the keys of an entry's first row are those of all its rows.
   *
   * The values are those of Spark's rows, copied where they lie in its memory.
   */
  def valuesOf(keys: Seq[Expression]): Option[Iterator[Seq[Any]]] =
    if (!madeBy(keys)) None
    else stage.broadcast.relationFuture.get().value match {
      case shared: HashedRelation =>
        val table = shared.asReadOnlyCopy() // get() writes into a row of the table's own
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

  /** What the optimizer learned since about nulls makes no other key. */
  private def comparable(key: Expression): Expression =
    key.transform { case b: BoundReference => b.copy(nullable = true) }.canonicalized
}

object BuildSide {

  /** Null-aware tables, which are those of NOT IN, are none. */
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
