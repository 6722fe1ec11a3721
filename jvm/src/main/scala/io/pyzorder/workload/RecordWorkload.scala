package io.pyzorder.workload

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.pyzorder.shim

/**
 * If a query reads a table whose workload is to be recorded, keeps the session's settings for the
 * recorder, and starts it unless it is running. Runs after WrapFileIndexes, and does not change the
 * plan.
 */
case class RecordWorkload(session: shim.SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    val conf = session.sessionState.conf
    if (ScanConditions.indexes(plan).exists(WorkloadRecorder.isOn(conf, _))) {
      PlannedSettings.keep(conf)
      WorkloadRecorder.start(session.sparkContext)
    }
    plan
  }
}
