package io.pyzorder.common

import org.apache.spark.QueryContext
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.trees.Origin

/**
 * An error of pyzorder, in Spark's style: an error class, an SQLSTATE, and a sentence that says
 * what to do. Made by ZOrderErrors only. It is an AnalysisException, so that PySpark, Connect and
 * JDBC show its sentence without a stack trace.
 *
 * @param condition  the error class, `ZORDER_…`
 * @param state      five characters
 * @param sentence   what happened and what to do
 * @param parameters the names and values that the sentence holds
 */
final class ZOrderException(
    val condition: String,
    state: String,
    val sentence: String,
    parameters: Map[String, String] = Map.empty,
    cause: Option[Throwable] = None)
    extends AnalysisException(
      s"[$condition] $sentence SQLSTATE: $state",
      None,
      None,
      cause,
      Some(condition),
      parameters,
      Array.empty[QueryContext]) {

  override def getSqlState: String = state

  /**
   * Itself: Spark would put a copy in its place that has a query context, and PySpark looks up the
   * message of such an error in Spark's own list of error classes, where ours are not.
   */
  override def withPosition(origin: Origin): AnalysisException = this
}
