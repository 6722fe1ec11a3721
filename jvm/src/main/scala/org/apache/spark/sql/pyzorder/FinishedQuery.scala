package org.apache.spark.sql.pyzorder

import org.apache.spark.scheduler.SparkListenerEvent
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/** Matches the event that Spark sends when a query has succeeded. */
object FinishedQuery {
  def unapply(event: SparkListenerEvent): Option[QueryExecution] = event match {
    case end: SparkListenerSQLExecutionEnd if end.executionFailure.isEmpty => Option(end.qe)
    case _ => None
  }
}
