package io.pyzorder.metadataonly

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{IntegerLiteral, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.{Limit, LocalLimit, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.plans.logical.{ReturnAnswer, Sort}
import org.apache.spark.sql.execution.{CollectLimitExec, LocalLimitExec, SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.TakeOrderedAndProjectExec
import org.apache.spark.sql.pyzorder.shim
import org.slf4j.LoggerFactory

import io.pyzorder.skipping.plan.SkippingStrategy

/**
 * Plans `ORDER BY c LIMIT n` and `LIMIT n` on an indexed relation as Spark does, but with a scan
 * that opens fewer files. With ORDER BY, the scan opens only the files that can contain one of the
 * first n rows. Without ORDER BY, it opens just enough files to return any n rows. Plans with an
 * OFFSET, and ordered plans whose limit is at least spark.sql.execution.topKSortFallbackThreshold,
 * are left to Spark, which plans them differently.
 */
final case class LimitStrategy(session: shim.SparkSession) extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] =
    try planned(plan).toSeq
    catch {
      case NonFatal(failure) =>
        LimitStrategy.log.warn(s"The index is not used for LIMIT: $failure")
        Nil
    }

  private def planned(plan: LogicalPlan): Option[SparkPlan] = plan match {
    case ReturnAnswer(root) => topN(root).orElse(root match {
        case Limit(IntegerLiteral(n), child) => anyRows(child, n).map(CollectLimitExec(n, _))
        case _ => None
      })
    case LocalLimit(IntegerLiteral(n), child) => anyRows(child, n).map(LocalLimitExec(n, _))
    case other => topN(other)
  }

  private def topN(plan: LogicalPlan): Option[SparkPlan] = plan match {
    case Limit(IntegerLiteral(n), sort: Sort) => topN(n, sort, sort.output)
    case Limit(IntegerLiteral(n), Project(columns, sort: Sort)) => topN(n, sort, columns)
    case _ => None
  }

  private def topN(n: Int, sort: Sort, columns: Seq[NamedExpression]): Option[SparkPlan] =
    if (!sort.global || n >= session.sessionState.conf.topKSortFallbackThreshold) None
    else for {
      scan <- IndexedScan.of(sort.child)
      need <- TopN.of(sort.order, n, scan)
      read <- SkippingStrategy(scan.over(new TopNFileIndex(scan, need))).headOption
    } yield TakeOrderedAndProjectExec(n, sort.order, columns, read)

  private def anyRows(child: LogicalPlan, n: Int): Option[SparkPlan] =
    for {
      scan <- IndexedScan.of(child) if n > 0
      read <- SkippingStrategy(scan.over(new AnyRowsFileIndex(scan, n))).headOption
    } yield read
}

object LimitStrategy {
  private val log = LoggerFactory.getLogger(classOf[LimitStrategy])
}
