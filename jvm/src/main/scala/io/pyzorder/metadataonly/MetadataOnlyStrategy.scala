package io.pyzorder.metadataonly

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.expressions.NamedExpression
import org.apache.spark.sql.catalyst.planning.PhysicalAggregation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.aggregate.{AggUtils, BaseAggregateExec}
import org.apache.spark.sql.pyzorder.shim
import org.slf4j.LoggerFactory

import io.pyzorder.skipping.plan.SkippingStrategy

/**
 * Plans COUNT, MIN and MAX over an indexed relation, also with GROUP BY, and SELECT DISTINCT. A
 * file is not read if the index provides the file's contribution to the result. This is a planner
 * strategy rather than an optimizer rule, because it must not change the logical plan. Spark
 * compares logical plans to merge, cache and reuse them.
 */
final case class MetadataOnlyStrategy(session: shim.SparkSession) extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case PhysicalAggregation(grouping, aggregates, results, child)
        if grouping.nonEmpty || aggregates.nonEmpty =>
      try planned(grouping, aggregates, results, child).toSeq
      catch {
        case NonFatal(failure) =>
          MetadataOnlyStrategy.log.warn(s"The index is not used for aggregates: $failure")
          Nil
      }
    case _ => Nil
  }

  private def planned(
      grouping: Seq[NamedExpression],
      aggregates: Seq[AggregateExpression],
      results: Seq[NamedExpression],
      child: LogicalPlan): Option[SparkPlan] =
    for {
      scan <- IndexedScan.of(child)
      answered = aggregates.flatMap(IndexedAggregate.of(_, scan))
      if answered.length == aggregates.length
      groups = grouping.flatMap(GroupingColumn.of(_, scan))
      if groups.length == grouping.length && scan.mayGroup(groups)
      index = new AnsweringFileIndex(scan, groups, answered)
      read <- SkippingStrategy(scan.over(index)).headOption
      whole <- AggUtils
        .planAggregateWithoutDistinct(grouping, aggregates, results, read).headOption
      plan <- withAnswers(whole, read, index)
    } yield plan

  /**
   * Adds an IndexAnswersExec above the partial aggregation. Returns None unless `whole` contains
   * exactly one partial aggregation over `read`.
   */
  private def withAnswers(
      whole: SparkPlan,
      read: SparkPlan,
      index: AnsweringFileIndex): Option[SparkPlan] = {
    var placed = 0
    val plan = whole.transformUp {
      case partial: BaseAggregateExec
          if (partial.child eq read) && partial.output.map(_.dataType) == index.dataTypes =>
        placed += 1
        IndexAnswersExec(partial, index)
    }
    if (placed == 1) Some(plan) else None
  }
}

object MetadataOnlyStrategy {
  private val log = LoggerFactory.getLogger(classOf[MetadataOnlyStrategy])
}
