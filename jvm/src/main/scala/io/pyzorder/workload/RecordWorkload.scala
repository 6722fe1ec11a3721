package io.pyzorder.workload

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.pyzorder.shim

/**
 * Starts the recorder of the application as soon as a query reads a table whose workload is to be
 * recorded. Runs after WrapFileIndexes, and does not change the plan.
 */
case class RecordWorkload(session: shim.SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (ScanConditions.indexes(plan).exists(WorkloadRecorder.isOn(session, _)))
      WorkloadRecorder.start(session.sparkContext)
    plan
  }
}
