package io.pyzorder.api

import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.commands.TableFunctions
import io.pyzorder.workload.WorkloadRecorder

/**
 * Gives access to the recorded workload of a table. `target` has the same syntax as the argument of
 * zorder_workload('…').
 */
object WorkloadApi {

  /** Deletes the recorded workload. */
  def clear(session: shim.SparkSession, target: String): Unit = {
    val table = TableFunctions.tableOf(session, target)
    WorkloadRecorder.clear(session, table.folder(session))
  }

  /** Writes what this application has recorded about any table, without waiting for the timer. */
  def flush(session: shim.SparkSession): Unit = WorkloadRecorder.flush(session)
}
