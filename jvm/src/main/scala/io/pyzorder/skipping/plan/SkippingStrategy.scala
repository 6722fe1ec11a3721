package io.pyzorder.skipping.plan

import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.datasources.{FileSourceStrategy, HadoopFsRelation}
import org.apache.spark.sql.execution.datasources.LogicalRelation

import io.pyzorder.skipping.files.ReportingFileIndex

/**
 * Plans a scan as Spark does, and adds a SkippingScanExec above it to report which files were
 * skipped. Bucketed scans do not get such a node, because Spark's bucketing rules look for the scan
 * itself.
 */
object SkippingStrategy extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] =
    if (!readsOurs(plan)) Nil
    else FileSourceStrategy(plan).map(_.transformUp {
      case scan: FileSourceScanExec if scan.relation.bucketSpec.isEmpty => SkippingScanExec(scan)
    })

  @scala.annotation.tailrec
  private def readsOurs(plan: LogicalPlan): Boolean = plan match {
    case Project(_, child) => readsOurs(child)
    case Filter(_, child) => readsOurs(child)
    case relation: LogicalRelation => relation.relation match {
        case files: HadoopFsRelation => files.location.isInstanceOf[ReportingFileIndex]
        case _ => false
      }
    case _ => false
  }
}
