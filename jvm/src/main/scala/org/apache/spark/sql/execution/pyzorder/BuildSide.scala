package org.apache.spark.sql.execution.pyzorder

import java.util.HashSet
import java.util.concurrent.{TimeUnit, TimeoutException}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Attribute, BindReferences, BoundReference, Expression
}
import org.apache.spark.sql.catalyst.plans.physical.BroadcastPartitioning
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.exchange.{
  BroadcastExchangeExec, BroadcastExchangeLike, ReusedExchangeExec
}
import org.apache.spark.sql.execution.joins.{HashJoin, HashedRelation, HashedRelationBroadcastMode}

/**
 * The broadcast side of a hash join. All of its rows are known after the broadcast, except those
 * whose key is null. The class is in Spark's package because Spark's hash tables are private to
 * that package.
 *
 * @param side the node in the plan, which is the exchange itself, a node that reuses it, or a stage
 *             of adaptive execution
 */
final class BuildSide private (
    val side: SparkPlan,
    exchange: SparkPlan with BroadcastExchangeLike,
    mode: HashedRelationBroadcastMode) {

  /**
   * An object that identifies the broadcast. It is the same object for all nodes that reuse the
   * broadcast.
   */
  def broadcast: AnyRef = exchange

  /** The plan whose rows are broadcast. */
  def rows: SparkPlan = exchange.children.head

  /** Whether adaptive execution has turned the broadcast into a stage. */
  def isStage: Boolean = side.isInstanceOf[BroadcastQueryStageExec]

  /** Whether the rows have been broadcast already. */
  def isDone: Boolean = side match {
    case stage: BroadcastQueryStageExec => stage.isMaterialized
    case _ => false
  }

  /**
   * Starts the broadcast, unless it has been started already. The result tells whether it has
   * ended, successfully or not.
   */
  def started(): () => Boolean = {
    val future = exchange.relationFuture
    () => future.isDone
  }

  /** The number of rows that have been broadcast so far. */
  def rowCount: Long = exchange.runtimeStatistics.rowCount.fold(0L)(_.toLong)

  /** The number of rows. Waits for the broadcast, like `valuesOf`. */
  def finalRowCount: Option[Long] = awaited.map(_ => rowCount)

  /** How long it took to execute the plan and to broadcast its rows, in milliseconds. */
  def millis: Long = Seq("collectTime", "buildTime", "broadcastTime")
    .flatMap(exchange.metrics.get).map(_.value.max(0L)).sum

  /**
   * The values of expressions over the rows. The result contains each combination at least once,
   * except combinations that occur only in rows whose join key is null. Waits for the broadcast,
   * but no longer than the join itself would. None if the broadcast takes longer or has more than
   * `limit` rows.
   *
   * If the expressions are the keys from which the hash table was built, only the first row of each
   * entry is read. Spark packs several integral keys into one LONG, which is then the hash table's
   * key. In any case, the hash table's key is computed from the join's keys without losing
   * information, so all rows of an entry have the same values of these keys.
   *
   * Values that refer to the memory of Spark's rows are copied.
   *
   * @param columns the rows' columns, as the expressions refer to them
   */
  def valuesOf(
      expressions: Seq[Expression],
      columns: Seq[Attribute],
      limit: Long): Option[Iterator[Seq[Any]]] =
    awaited.filter(_ => rowCount <= limit).collect {
      case shared: HashedRelation =>
        val table = shared.asReadOnlyCopy() // each copy has its own row for the results of get()
        val bound = expressions.map(BindReferences.bindReference(_, columns))
        val rowsOfEntry = if (madeBy(expressions, columns)) 1 else Int.MaxValue
        // keys() may return a key once for each of its rows
        val seen = new HashSet[InternalRow]
        val keys =
          if (rowsOfEntry == 1 || table.keyIsUnique) table.keys()
          else table.keys().filter(key => seen.add(key.copy()))
        for (key <- keys; row <- table.get(key).take(rowsOfEntry))
          yield bound.map(expression => InternalRow.copyValue(expression.eval(row)))
    }

  private def awaited: Option[Any] =
    try Some(
        exchange.relationFuture.get(side.conf.broadcastTimeout, TimeUnit.SECONDS).value)
    catch { case _: TimeoutException => None }

  private def madeBy(keys: Seq[Expression], columns: Seq[Attribute]): Boolean = {
    val bound = HashJoin.rewriteKeyExpr(keys).map(BindReferences.bindReference(_, columns))
    bound.map(comparable) == mode.key.map(comparable)
  }

  /** Ignores nullability, which the optimizer may have changed since the broadcast was planned. */
  private def comparable(key: Expression): Expression =
    key.transform { case b: BoundReference => b.copy(nullable = true) }.canonicalized
}

object BuildSide {

  /** Broadcasts rows as the hash table of a join with these keys. */
  def broadcast(rows: SparkPlan, keys: Seq[Attribute]): SparkPlan = {
    val bound = HashJoin.rewriteKeyExpr(keys).map(BindReferences.bindReference(_, rows.output))
    BroadcastExchangeExec(HashedRelationBroadcastMode(bound), rows)
  }

  /** Matches broadcasts of hash tables, except the null-aware ones that Spark uses for NOT IN. */
  def unapply(plan: SparkPlan): Option[BuildSide] = exchangeOf(plan).flatMap { exchange =>
    exchange.outputPartitioning match {
      case BroadcastPartitioning(mode: HashedRelationBroadcastMode) if !mode.isNullAware =>
        Some(new BuildSide(plan, exchange, mode))
      case _ => None
    }
  }

  private def exchangeOf(plan: SparkPlan): Option[SparkPlan with BroadcastExchangeLike] =
    plan match {
      case stage: BroadcastQueryStageExec => exchangeOf(stage.plan)
      case reused: ReusedExchangeExec => exchangeOf(reused.child)
      case exchange: BroadcastExchangeLike => Some(exchange)
      case _ => None
    }
}
