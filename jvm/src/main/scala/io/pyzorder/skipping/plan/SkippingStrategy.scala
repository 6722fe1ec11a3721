package io.pyzorder.skipping.plan

import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.datasources.{FileSourceStrategy, HadoopFsRelation}
import org.apache.spark.sql.execution.datasources.LogicalRelation

import io.pyzorder.skipping.files.ReportingFileIndex

/**
 * Plans a scan as Spark does, and puts a SkippingScanExec over it that tells what was skipped.
 * Bucketed scans go without: Spark's rules about buckets look for the scan itself.
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
