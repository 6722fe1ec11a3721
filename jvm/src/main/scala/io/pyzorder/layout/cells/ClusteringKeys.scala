package io.pyzorder.layout.cells

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.expressions.{Ascending, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.{SortExec, SparkPlan}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec

import io.pyzorder.expressions.ZOrderValue

/**
 * The keys that determine how rows are laid out.
 *
 * @param expressions the clustering columns, or their byte[] z-value
 * @param lexical     whether rows are sorted by one expression after another rather than by
 *                    interleaved bits
 * @param curve       `zorder`, `hilbert` or `linear`
 */
final case class ClusteringKeys(expressions: Seq[Expression], lexical: Boolean, curve: String) {

  /**
   * Sends each row to the task that writes its file, and sorts the rows within each task.
   *
   * @param partition number of a row's table partition
   * @param within    a sort order that is applied before the clustering order within each file
   * @param turn      see ShuffleKey
   */
  def layOut(
      rows: SparkPlan,
      partition: Expression,
      clustering: Broadcast[Clustering],
      within: Seq[SortOrder] = Nil,
      turn: Option[Expression] = None): SparkPlan = {
    val sent = HashPartitioning(
      Seq(ShuffleKey(expressions, partition, clustering, turn)), clustering.value.leafCount)
    val order = if (lexical) expressions else Seq(PlaceInFile(expressions, clustering))
    SortExec(
      within ++ order.map(SortOrder(_, Ascending)), global = false, ShuffleExchangeExec(sent, rows))
  }
}

object ClusteringKeys {

  /**
   * @param direct whether z-values are built from order-preserving encodings of the values rather
   *               than from their ranks. The rows are then sorted by z-value alone and divided into
   *               files of about equal size. Requires the curve `zorder`.
   */
  def of(columns: Seq[Expression], curve: String, direct: Boolean): ClusteringKeys =
    ClusteringKeys(
      if (direct) Seq(ZOrderValue(columns)) else columns, direct || curve == "linear", curve)
}
