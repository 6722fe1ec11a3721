package io.pyzorder.skipping.plan

import scala.util.control.NonFatal

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{FileSourceScanExec, SQLExecution, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.vectorized.ColumnarBatch

import io.pyzorder.skipping.files.{ReportingFileIndex, SkippingOutcome}

/**
 * Passes a file scan's rows or batches through unchanged, and shows in EXPLAIN and the Spark UI how
 * many of the scan's files were skipped.
 */
case class SkippingScanExec(child: SparkPlan) extends UnaryExecNode {

  override def nodeName: String = "ZOrderSkipping"

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override def supportsColumnar: Boolean = child.supportsColumnar

  override def supportsRowBased: Boolean = child.supportsRowBased

  override def vectorTypes: Option[Seq[String]] = child.vectorTypes

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "filesTotal" -> SQLMetrics.createMetric(sparkContext, "number of files in total"),
    "filesSelected" -> SQLMetrics.createMetric(sparkContext, "number of files selected"),
    "filesSkipped" -> SQLMetrics.createMetric(sparkContext, "number of files skipped"),
    "filesSkippedByJoins" ->
      SQLMetrics.createMetric(sparkContext, "number of files skipped by join keys"),
    "filesSkippedBySketches" ->
      SQLMetrics.createMetric(sparkContext, "number of files skipped by sketches"),
    "filesUnindexed" -> SQLMetrics.createMetric(sparkContext, "number of files unindexed"),
    "pruningTime" -> SQLMetrics.createTimingMetric(sparkContext, "skipping time"))

  /**
   * The effect of skipping on the scan's files, or None if the child is no longer a scan that
   * pyzorder prunes.
   */
  def outcome: Option[SkippingOutcome] = scan.flatMap { scan =>
    scan.relation.location match {
      case index: ReportingFileIndex => Some(index.outcome(scan.partitionFilters, scan.dataFilters))
      case _ => None
    }
  }

  private def scan: Option[FileSourceScanExec] =
    child.collectFirst { case scan: FileSourceScanExec => scan }

  protected override def doExecute(): RDD[InternalRow] = {
    val rows = child.execute()
    sendMetrics()
    rows
  }

  protected override def doExecuteColumnar(): RDD[ColumnarBatch] = {
    val batches = child.executeColumnar()
    sendMetrics()
    batches
  }

  /** Sends the metrics, such as the number of skipped files, to the Spark UI. */
  private def sendMetrics(): Unit = outcome.foreach { outcome =>
    metrics("filesTotal").set(outcome.total)
    metrics("filesSelected").set(outcome.selected)
    metrics("filesSkipped").set(outcome.skipped)
    metrics("filesSkippedByJoins").set(outcome.skippedByJoins)
    metrics("filesSkippedBySketches").set(outcome.skippedBySketches)
    metrics("filesUnindexed").set(outcome.unindexed)
    metrics("pruningTime").set(outcome.nanos / 1000000)
    val execution = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    SQLMetrics.postDriverMetricUpdates(sparkContext, execution, metrics.values.toSeq)
  }

  /**
   * The outcome, or an error message if the files can no longer be listed. Does not throw, because
   * a plan must always be printable.
   */
  private def summary: String =
    try outcome.map(_.summary).getOrElse("")
    catch { case NonFatal(failure) => s"files cannot be listed: ${failure.getMessage}" }

  override def simpleString(maxFields: Int): String = s"$nodeName [$summary]"

  override def verboseStringWithOperatorId(): String =
    s"$formattedNodeName\n" +
      outcome.map(o => s"Files: ${o.summary}\nIndexFilter: ${o.filter}\n").getOrElse("")

  override protected def withNewChildInternal(newChild: SparkPlan): SkippingScanExec =
    copy(child = newChild)
}
