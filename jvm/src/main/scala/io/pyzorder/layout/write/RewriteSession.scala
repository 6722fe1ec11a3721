package io.pyzorder.layout.write

import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.pyzorder.{shim, SessionAccess}

/**
 * Sessions for rewriting rows. Their settings keep Spark from skipping files, merging tasks and
 * rebasing dates.
 */
object RewriteSession {

  /**
   * A copy of the user's session with the settings for rewriting.
   *
   * @param timestamps the value of spark.sql.parquet.outputTimestampType for the new files; None to
   *                   use the user's setting
   */
  def of(user: shim.SparkSession, timestamps: Option[String]): shim.SparkSession = {
    val session = SessionAccess.cloned(user)
    val conf = session.sessionState.conf
    (settings ++ timestamps.map(SQLConf.PARQUET_OUTPUT_TIMESTAMP_TYPE.key -> _)).foreach {
      case (key, value) => conf.setConfString(key, value)
    }
    session
  }

  /**
   * Runs `body` with `session` as the active session, both on the driver and in the tasks that
   * `body` starts.
   */
  def use[T](session: shim.SparkSession)(body: => T): T =
    SessionAccess.withActive(session)(SQLExecution.withSQLConfPropagated(session)(body))

  private val settings: Map[String, String] = Map(
    SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false",
    SQLConf.IGNORE_CORRUPT_FILES.key -> "false",
    SQLConf.IGNORE_MISSING_FILES.key -> "false",
    SQLConf.READ_SIDE_CHAR_PADDING.key -> "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite" -> "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite" -> "CORRECTED",
    "spark.sql.zorder.skipping.enabled" -> "false",
    // Order-independent checksums detect a retried task whose rows differ from those of its first
    // attempt. They are not needed, because a retried task always sends the same rows to the same
    // tasks. A row's target depends only on its values and, in a cell with several files, on its
    // position among the rows that the task reads. A retried task reads the same files in the same
    // order.
    "spark.sql.shuffle.orderIndependentChecksum.enabled" -> "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch" -> "false")
}
