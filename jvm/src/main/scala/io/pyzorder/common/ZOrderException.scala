package io.pyzorder.common

import org.apache.spark.QueryContext
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.trees.Origin

/**
 * An error raised by pyzorder. Like Spark's own errors, it has an error class, an SQLSTATE and a
 * message that says what to do. Only ZOrderErrors creates instances. The class extends
 * AnalysisException because PySpark, Spark Connect and JDBC show the messages of such exceptions
 * without a stack trace.
 *
 * @param condition  the error class, `ZORDER_…`
 * @param state      the SQLSTATE
 * @param sentence   the message, which says what happened and what to do
 * @param parameters the names and values that were filled into the message
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
   * Returns the exception itself. The default implementation returns a copy with a query context.
   * If an error has a context, PySpark looks up its message in Spark's own list of error classes,
   * which does not include pyzorder's.
   */
  override def withPosition(origin: Origin): AnalysisException = this
}
