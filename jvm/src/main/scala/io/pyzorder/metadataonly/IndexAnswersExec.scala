package io.pyzorder.metadataonly

import scala.util.control.NonFatal

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeProjection}
import org.apache.spark.sql.execution.{SQLExecution, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}

/**
 * The operator between the partial and the final step of an aggregation. It passes on the partial
 * buffers of the files that are read, and adds rows of buffers, one for each group, for the files
 * whose aggregates the index contains.
 *
 * These rows are not part of the plan itself. When the plan first executes, AnsweringFileIndex
 * computes the rows and, at the same time, chooses the files to read. It uses the state that the
 * plan's scans share (see PlanState): the index snapshots and a listing of the files, both taken at
 * the same moment. Unless this listing is recent enough, AnsweringFileIndex also checks in the
 * store that the indexed files have not changed since they were listed. As in plain Spark, a query
 * therefore counts the files that exist when it runs, even if it was planned earlier, and every
 * file is counted exactly once.
 */
case class IndexAnswersExec(child: SparkPlan, @transient index: AnsweringFileIndex)
    extends UnaryExecNode {

  override def nodeName: String = "ZOrderAnswers"

  override def output: Seq[Attribute] = child.output

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "filesAnswered" ->
      SQLMetrics.createMetric(sparkContext, "number of files answered from the index"),
    "filesRead" -> SQLMetrics.createMetric(sparkContext, "number of files opened"))

  protected override def doExecute(): RDD[InternalRow] = {
    val answers = index.take()
    sendMetrics(answers)
    val toUnsafe = UnsafeProjection.create(output.map(_.dataType).toArray)
    val rows: Seq[InternalRow] = answers.rows.map(toUnsafe(_).copy())
    sparkContext.union(child.execute(), sparkContext.parallelize(rows, 1))
  }

  private def sendMetrics(answers: AnsweringFileIndex.Answers): Unit = {
    metrics("filesAnswered").set(answers.answered)
    metrics("filesRead").set(read(answers))
    val execution = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    SQLMetrics.postDriverMetricUpdates(sparkContext, execution, metrics.values.toSeq)
  }

  private def read(answers: AnsweringFileIndex.Answers): Int = answers.files.count(_._2)

  /**
   * The number of files whose aggregates come from the index and the number of files opened, or an
   * error message if the files cannot be listed. Does not throw, because a plan must always be
   * printable.
   */
  private def summary: String =
    try {
      val answers = index.preview()
      s"${answers.answered} files answered from the index, ${read(answers)} opened"
    } catch { case NonFatal(failure) => s"files cannot be listed: ${failure.getMessage}" }

  override def simpleString(maxFields: Int): String = s"$nodeName [$summary]"

  override def verboseStringWithOperatorId(): String = s"$formattedNodeName\nFiles: $summary\n"

  override protected def withNewChildInternal(newChild: SparkPlan): IndexAnswersExec =
    copy(child = newChild)
}
