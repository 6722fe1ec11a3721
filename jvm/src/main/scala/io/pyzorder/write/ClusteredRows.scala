package io.pyzorder.write

import org.apache.hadoop.fs.Path
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Ascending, Attribute, Expression, Literal}
import org.apache.spark.sql.catalyst.expressions.SortOrder
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.index.model.IndexedColumn
import io.pyzorder.index.store.IndexStore
import io.pyzorder.layout.cells.{Clustering, ClusteringKeys, Region}
import io.pyzorder.layout.select.RewritePlan
import io.pyzorder.storage.TableFolder

/**
 * How the rows of a write are laid out.
 *
 * @param clusteredBy the clustering columns
 * @param curve       see ClusteringKeys
 * @param direct      see ClusteringKeys.of
 * @param targetSize  the size in bytes of the files to write
 * @param sampleSize  approximate number of rows to sample
 * @param root        the table's folder; None if it does not exist yet
 */
final case class WriteLayout(
    clusteredBy: Seq[IndexedColumn],
    curve: String,
    direct: Boolean,
    targetSize: Long,
    sampleSize: Int,
    root: Option[Path])

/**
 * The rows of a query whose result is written to a table, arranged so that each task gets the rows
 * of one file.
 *
 * @param columns    the values of the clustering columns
 * @param partitions the table's partition columns
 */
case class ClusteredRows(
    columns: Seq[Expression],
    partitions: Seq[Expression],
    layout: WriteLayout,
    child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  /** Prevents Spark from sorting the rows by partition again. */
  override def outputOrdering: Seq[SortOrder] = partitions.map(SortOrder(_, Ascending))

  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(child = newChild)
}

/** Plans ClusteredRows as ClusteredRowsExec. */
object ClusteredRowsStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case rows: ClusteredRows =>
      Seq(ClusteredRowsExec(rows.columns, rows.partitions, rows.layout, planLater(rows.child)))
    case _ => Nil
  }
}

/** Executes ClusteredRows. Runs the query's last stage twice, the first time to sample its rows. */
case class ClusteredRowsExec(
    columns: Seq[Expression],
    partitions: Seq[Expression],
    layout: WriteLayout,
    child: SparkPlan)
    extends UnaryExecNode {
  import ClusteredRowsExec._

  override def output: Seq[Attribute] = child.output

  override def outputOrdering: Seq[SortOrder] = partitions.map(SortOrder(_, Ascending))

  override protected def doExecute(): RDD[InternalRow] = {
    val keys = ClusteringKeys.of(columns, layout.curve, layout.direct)
    val drawn = RowSample.take(child, keys.expressions, partitions, layout.sampleSize)
    if (drawn.partitions.isEmpty) child.execute()
    else {
      val bytes = bytesOfRow(drawn)
      val files =
        drawn.numRows.map(rows => RewritePlan.filesOf((rows * bytes).toLong, layout.targetSize))
      val unseen = if (partitions.isEmpty) 0 else UnseenPartitions
      val clustering =
        Clustering.of(keys, drawn.sample, (files ++ Seq.fill(unseen)(1)).map(_ -> Region))
      keys.layOut(
        child, numberOf(drawn, unseen), sparkContext.broadcast(clustering), outputOrdering,
        Some(RowHash(child.output))).execute()
    }
  }

  private def numberOf(drawn: RowSample, unseen: Int): Expression =
    if (partitions.isEmpty) Literal(0)
    else {
      val numbers = new java.util.HashMap[InternalRow, Integer]()
      drawn.partitions.zipWithIndex.foreach { case (key, number) => numbers.put(key, number) }
      PartitionNumber(partitions, sparkContext.broadcast(numbers), unseen)
    }

  /**
   * The size of a stored row in bytes: the average in the indexed files, or an estimate if no files
   * are indexed. The average is capped, because the index may have been forged.
   */
  private def bytesOfRow(drawn: RowSample): Double = {
    val session = this.session.asInstanceOf[shim.SparkSession]
    val known = for {
      root <- layout.root
      ref <- IndexStore.latest(session.sessionState.newHadoopConf(), new TableFolder(root))
      entries <- IndexStore.loadAll(session, ref)(_.entries)
      rows = entries.map(_.numRecords).sum
      if rows > 0
    } yield math.min(entries.map(_.size.toDouble).sum / rows, drawn.rowSize * MostStored)
    known.getOrElse(drawn.rowSize * StoredShare)
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan =
    copy(child = newChild)
}

object ClusteredRowsExec {

  /**
   * The number of tasks for the rows of partitions that the sample missed. There are probably few
   * such rows.
   */
  private val UnseenPartitions = 16

  /** The approximate ratio of a row's encoded and compressed size to its size in Spark's memory. */
  private val StoredShare = 0.3

  /**
   * The maximum ratio of a row's size in a file to its size in Spark's memory. In small files, the
   * footer makes this ratio large.
   */
  private val MostStored = 10.0
}
