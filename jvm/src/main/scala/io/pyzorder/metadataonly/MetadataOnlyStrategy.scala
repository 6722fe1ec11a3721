package io.pyzorder.metadataonly

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression, Average, Count, Sum
}
import org.apache.spark.sql.catalyst.expressions.{Alias, Expression, NamedExpression}
import org.apache.spark.sql.catalyst.planning.PhysicalAggregation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.aggregate.{AggUtils, BaseAggregateExec}
import org.apache.spark.sql.pyzorder.shim
import org.slf4j.LoggerFactory

import io.pyzorder.skipping.plan.SkippingStrategy

/**
 * Plans COUNT, MIN and MAX over an indexed relation, also with GROUP BY, SELECT DISTINCT, and
 * aggregates of DISTINCT values. A file is not read if the index provides the file's contribution
 * to the result. This is a planner strategy rather than an optimizer rule, because it must not
 * change the logical plan. Spark compares logical plans to merge, cache and reuse them.
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
      distinct = distinctValues(aggregates)
      answered = if (distinct.nonEmpty) Nil else aggregates.flatMap(IndexedAggregate.of(_, scan))
      if distinct.nonEmpty || answered.length == aggregates.length
      columns = grouping ++ distinct
      groups = columns.flatMap(GroupingColumn.of(_, scan))
      if groups.length == columns.length && scan.mayGroup(groups, isDistinct = answered.isEmpty)
      index = new AnsweringFileIndex(scan, groups, answered)
      read <- SkippingStrategy(scan.over(index)).headOption
      whole <- aggregated(grouping, aggregates, distinct, results, read).headOption
      plan <- withAnswers(whole, read, index)
    } yield plan

  /**
   * The columns whose distinct values are aggregated; empty unless all of the aggregates are
   * counts, sums or averages of the same columns' distinct values. Spark first determines the
   * distinct values in each group.
   */
  private def distinctValues(aggregates: Seq[AggregateExpression]): Seq[Expression] =
    if (!aggregates.forall(isOfDistinct)) Nil
    else
      aggregates.map(_.aggregateFunction.children.filterNot(_.foldable)).distinct match {
        case Seq(columns) => columns
        case _ => Nil
      }

  private def isOfDistinct(aggregate: AggregateExpression): Boolean =
    aggregate.isDistinct && aggregate.filter.isEmpty && (aggregate.aggregateFunction match {
      case _: Count | _: Sum | _: Average => true
      case _ => false
    })

  private def aggregated(
      grouping: Seq[NamedExpression],
      aggregates: Seq[AggregateExpression],
      distinct: Seq[Expression],
      results: Seq[NamedExpression],
      read: SparkPlan): Seq[SparkPlan] =
    if (distinct.isEmpty) {
      AggUtils.planAggregateWithoutDistinct(grouping, aggregates, results, read)
    } else {
      val named = distinct.map {
        case column: NamedExpression => column
        case other => Alias(other, other.toString)()
      }
      AggUtils.planAggregateWithOneDistinct(
        grouping, aggregates, Nil, distinct, named, results, read)
    }

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
