package io.pyzorder.skipping.joins

import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.aggregate.{
  BaseAggregateExec, HashAggregateExec, ObjectHashAggregateExec, SortAggregateExec
}
import org.apache.spark.sql.execution.exchange.{Exchange, ReusedExchangeExec}
import org.apache.spark.sql.execution.joins.BaseJoinExec

import io.pyzorder.skipping.plan.SkippingScanExec
import io.pyzorder.skipping.predicate.FilterColumn

/**
 * Whether a plan returns the same set of rows each time it is executed. False for plans with an
 * expression or operator whose results depend on the order in which Spark happens to process rows,
 * such as LIMIT, a sum of floating-point numbers, or a choice among strings that are equal under a
 * collation. Also false for plans that read anything other than files, literal rows and ranges of
 * numbers.
 */
private[joins] object RepeatableRows {

  def apply(plan: SparkPlan): Boolean = doubtful(plan).isEmpty

  /** The first operator because of which the rows may differ. */
  def doubtful(plan: SparkPlan): Option[SparkPlan] = plan.find(node => !isRepeatable(node))

  private def isRepeatable(node: SparkPlan): Boolean =
    node.expressions.forall(_.deterministic) && (node match {
      case _: FileSourceScanExec | _: SkippingScanExec | _: ScanWithKeysExec => true
      case _: LocalTableScanExec | _: RangeExec => true
      case _: QueryStageExec | _: ReusedExchangeExec => true
      case _: FilterExec | _: ProjectExec | _: SortExec | _: UnionExec => true
      case _: Exchange | _: ColumnarToRowTransition | _: RowToColumnarTransition => true
      case _: BaseJoinExec | _: WholeStageCodegenExec | _: InputAdapter => true
      case aggregate @ (_: HashAggregateExec | _: ObjectHashAggregateExec |
          _: SortAggregateExec) =>
        val groups = aggregate.asInstanceOf[BaseAggregateExec]
        groups.groupingExpressions.forall(group => FilterColumn.isOrdered(group.dataType)) &&
        groups.aggregateExpressions.forall(a => ignoresOrder(a.aggregateFunction))
      case _ => false
    })

  private def ignoresOrder(function: AggregateFunction): Boolean = function match {
    case _: Count => true
    case _: Min | _: Max => FilterColumn.isOrdered(function.dataType)
    case sum: Sum => !FilterColumn.isFloating(sum.child.dataType)
    case _ => false
  }
}
