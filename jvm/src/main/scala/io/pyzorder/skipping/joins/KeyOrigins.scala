package io.pyzorder.skipping.joins

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, PlanExpression}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, QueryStageExec}
import org.apache.spark.sql.execution.aggregate.{
  BaseAggregateExec, HashAggregateExec, ObjectHashAggregateExec, SortAggregateExec
}
import org.apache.spark.sql.execution.exchange.{Exchange, ReusedExchangeExec}
import org.apache.spark.sql.execution.joins.BaseJoinExec

import io.pyzorder.skipping.files.{FilteredScan, ScannedColumn, ZOrderFileIndex}
import io.pyzorder.skipping.plan.SkippingScanExec
import io.pyzorder.skipping.predicate.FilterColumn

/**
 * Finds the columns of files from which the values of a key come. Every value of the key in the
 * plan's rows that is not null is a value of one of these columns, in a row that the column's scan
 * returns. None if the key may have other values.
 *
 * This holds through every operator that only drops, reorders or repeats rows, or replaces values
 * by null, which an outer join does: a null key equals nothing. The operators may drop any rows, so
 * they need not be deterministic.
 */
private[joins] object KeyOrigins {

  def apply(plan: SparkPlan, key: Expression): Option[Seq[ScannedColumn]] =
    if (key.references.isEmpty || !key.references.subsetOf(plan.outputSet)) None
    else plan match {
      case files: FileSourceScanExec => columnOf(files, key).map(Seq(_))
      case keyed: ScanWithKeysExec => apply(keyed.scan, key)
      case project: ProjectExec =>
        apply(project.child, JoinedKey.replaced(key, JoinedKey.definitions(project.projectList)))
      case aggregate @ (_: HashAggregateExec | _: ObjectHashAggregateExec | _: SortAggregateExec) =>
        ofGroups(aggregate.asInstanceOf[BaseAggregateExec], key)
      case union: UnionExec => ofUnion(union, key)
      case join: BaseJoinExec =>
        join.children.filter(child => key.references.subsetOf(child.outputSet)) match {
          case Seq(side) => apply(side, key)
          case _ => None
        }
      case reused: ReusedExchangeExec => renamed(reused.output, reused.child, key)
      case stage: QueryStageExec => apply(stage.plan, key)
      case _: FilterExec | _: SortExec | _: Exchange | _: AQEShuffleReadExec | _: SkippingScanExec |
          _: WholeStageCodegenExec | _: InputAdapter |
          _: ColumnarToRowTransition | _: RowToColumnarTransition =>
        apply(plan.children.head, key)
      case _ => None
    }

  private def columnOf(files: FileSourceScanExec, key: Expression): Option[ScannedColumn] =
    for {
      index <- ScanWithKeysExec.indexOf(files) if index.couldSkip
      FilterColumn(column) <- JoinedKey.columnOf(files, key)
    } yield ScannedColumn(scanOf(index, files), column)

  /** The scan, without filters whose values subqueries provide while the query runs. */
  def scanOf(index: ZOrderFileIndex, files: FileSourceScanExec): FilteredScan = {
    def known(filters: Seq[Expression]): Seq[Expression] =
      filters.filterNot(_.exists(_.isInstanceOf[PlanExpression[_]]))
        .map(JoinedKey.unnumbered(files, _))
    index.scan(known(files.partitionFilters), known(files.dataFilters))
  }

  /** In every group, the value of a grouping expression is its value in some row of the group. */
  private def ofGroups(
      aggregate: BaseAggregateExec,
      key: Expression): Option[Seq[ScannedColumn]] = {
    val groups = aggregate.groupingExpressions
    val ofGroup =
      JoinedKey.replaced(key, JoinedKey.definitions(aggregate.resultExpressions))
    if (!ofGroup.references.forall(a => groups.exists(_.exprId == a.exprId))) None
    else apply(aggregate.child, JoinedKey.replaced(ofGroup, JoinedKey.definitions(groups)))
  }

  private def ofUnion(union: UnionExec, key: Expression): Option[Seq[ScannedColumn]] = {
    val branches = union.children.map(renamed(union.output, _, key))
    if (branches.forall(_.isDefined)) Some(branches.flatMap(_.get)) else None
  }

  /** The origins of a key in a plan whose columns have these names above it. */
  private def renamed(
      names: Seq[Attribute],
      plan: SparkPlan,
      key: Expression): Option[Seq[ScannedColumn]] =
    if (names.map(_.exprId).distinct.size != names.size) None
    else apply(plan, JoinedKey.replaced(key, names.map(_.exprId).zip(plan.output).toMap))
}
