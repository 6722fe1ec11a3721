package io.pyzorder.skipping.joins

import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId, Expression, PlanExpression}
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
 * Finds the file columns that provide the values of a key. Every non-null value of the key in the
 * plan's rows is a value of one of these columns, in a row that the column's scan returns. None if
 * the key may have other values.
 *
 * Every operator that only drops, reorders or repeats rows preserves this property. An outer join
 * also adds rows in which all columns of one side are null. The key must be null in these rows.
 * This suffices, because a null key equals nothing. The operators may drop any rows, so they need
 * not be deterministic.
 */
private[joins] object KeyOrigins {

  /**
   * @param of    the columns of the scan, which identify it in the plan
   * @param keyed the node that passes the keys of joins to the scan, if there is one
   */
  final case class Origin(
      column: ScannedColumn,
      of: Seq[ExprId],
      keyed: Option[ScanWithKeysExec] = None) {

    /** What the keys say about the files of the scan. */
    def restrictions: ScanRestrictions = keyed.fold(ScanRestrictions.none)(_.restrictions)
  }

  def apply(plan: SparkPlan, key: Expression): Option[Seq[Origin]] =
    if (key.references.isEmpty || !key.references.subsetOf(plan.outputSet)) None
    else plan match {
      case files: FileSourceScanExec =>
        columnOf(files, key).map(column => Seq(Origin(column, columnsOf(files))))
      case keyed: ScanWithKeysExec =>
        // the index of this scan will change when the scan executes, so the origin has a copy
        apply(keyed.scan, key).map(_.map { origin =>
          Origin(origin.column.withFilters(Nil, Nil), origin.of, Some(keyed))
        })
      case project: ProjectExec =>
        apply(project.child, JoinedKey.replaced(key, JoinedKey.definitions(project.projectList)))
      case aggregate @ (_: HashAggregateExec | _: ObjectHashAggregateExec | _: SortAggregateExec) =>
        ofGroups(aggregate.asInstanceOf[BaseAggregateExec], key)
      case union: UnionExec => ofUnion(union, key)
      case join: BaseJoinExec =>
        join.children.filter(child => key.references.subsetOf(child.outputSet)) match {
          case Seq(side) if JoinedKey.keepsValues(join, side, key) => apply(side, key)
          case _ => None
        }
      case reused: ReusedExchangeExec =>
        renamed(reused.output, reused.child, key).flatMap(apply(reused.child, _))
      case stage: QueryStageExec => apply(stage.plan, key)
      case _: FilterExec | _: SortExec | _: Exchange | _: AQEShuffleReadExec | _: SkippingScanExec |
          _: WholeStageCodegenExec | _: InputAdapter |
          _: ColumnarToRowTransition | _: RowToColumnarTransition =>
        apply(plan.children.head, key)
      case _ => None
    }

  def columnsOf(files: FileSourceScanExec): Seq[ExprId] = files.output.map(_.exprId)

  private def columnOf(files: FileSourceScanExec, key: Expression): Option[ScannedColumn] =
    for {
      index <- ScanWithKeysExec.indexOf(files) if index.couldSkip
      FilterColumn(column) <- JoinedKey.columnOf(files, key)
    } yield ScannedColumn(scanOf(index, files), column)

  /** The scan, without its filters that depend on subqueries, which run later. */
  def scanOf(index: ZOrderFileIndex, files: FileSourceScanExec): FilteredScan = {
    def known(filters: Seq[Expression]): Seq[Expression] =
      filters.filterNot(_.exists(_.isInstanceOf[PlanExpression[_]]))
        .map(JoinedKey.unnumbered(files, _))
    index.scan(known(files.partitionFilters), known(files.dataFilters))
  }

  private def ofGroups(
      aggregate: BaseAggregateExec,
      key: Expression): Option[Seq[Origin]] =
    belowGroups(aggregate, key).flatMap(apply(aggregate.child, _))

  /**
   * The key in terms of the columns below an aggregate, or None if it does not consist of grouping
   * expressions. In every group, the value of a grouping expression is its value in some row of the
   * group.
   */
  def belowGroups(aggregate: BaseAggregateExec, key: Expression): Option[Expression] = {
    val groups = aggregate.groupingExpressions
    val ofGroup =
      JoinedKey.replaced(key, JoinedKey.definitions(aggregate.resultExpressions))
    if (!ofGroup.references.forall(a => groups.exists(_.exprId == a.exprId))) None
    else Some(JoinedKey.replaced(ofGroup, JoinedKey.definitions(groups)))
  }

  private def ofUnion(union: UnionExec, key: Expression): Option[Seq[Origin]] = {
    val branches = union.children.map { branch =>
      renamed(union.output, branch, key).flatMap(apply(branch, _))
    }
    if (branches.forall(_.isDefined)) Some(branches.flatMap(_.get)) else None
  }

  /** The key in terms of the plan's own columns, which have the given names above the plan. */
  def renamed(names: Seq[Attribute], plan: SparkPlan, key: Expression): Option[Expression] =
    if (names.map(_.exprId).distinct.size != names.size) None
    else Some(JoinedKey.replaced(key, names.map(_.exprId).zip(plan.output).toMap))
}
