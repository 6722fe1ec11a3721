package io.pyzorder.metadataonly

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.expressions.{AttributeSet, BoundReference, ExprId, Expression}
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

import io.pyzorder.skipping.files.ZOrderFileIndex
import io.pyzorder.skipping.predicate.{FilterColumn, IndexFilter, PredicateRules}

/**
 * A plan that consists of a scan of an indexed relation, with deterministic projections and filters
 * above it. The plan returns exactly those rows of the files for which all filters are TRUE.
 *
 * @param partitionFilters the filters that reference only partition columns. The listing applies
 *                         these filters
 * @param dataFilters      all other filters, in which names are spelled as in the relation
 */
final case class IndexedScan(
    plan: LogicalPlan,
    relation: LogicalRelation,
    index: ZOrderFileIndex,
    partitionFilters: Seq[Expression],
    dataFilters: Seq[Expression],
    private val aliases: Map[Long, Expression],
    private val partitionColumns: Seq[Attribute]) {

  private def files: HadoopFsRelation = relation.relation.asInstanceOf[HadoopFsRelation]

  /**
   * The file column that an expression over the plan's output refers to, or None if there is none.
   */
  def column(expression: Expression): Option[FilterColumn] = {
    val resolved = IndexedScan.spelled(relation, resolve(expression))
    if (resolved.references.exists(a => partitionColumns.exists(_.exprId == a.exprId))) None
    else FilterColumn.unapply(resolved).filter(_.through.isEmpty)
  }

  /** The ordinal of the partition column that an expression refers to, or None if there is none. */
  def partitionColumn(expression: Expression): Option[Int] = resolve(expression) match {
    case a: AttributeReference =>
      Some(partitionColumns.indexWhere(_.exprId == a.exprId)).filter(_ >= 0)
    case _ => None
  }

  /**
   * Whether the index may know for most files to which groups their rows belong. Otherwise,
   * checking all files could take longer than the files that are not opened would.
   *
   * @param isDistinct whether a file may have rows of several groups
   */
  def mayGroup(grouping: Seq[GroupingColumn], isDistinct: Boolean): Boolean = {
    val columns = grouping.collect { case GroupingColumn.OfFile(column) => column }
    columns.isEmpty || index.knowsMostGroups(columns, isDistinct)
  }

  /**
   * Whether the values of a partition pass the filters on partition columns. The listing should
   * return only partitions that pass. If it returns a partition that does not pass, the index is
   * not used for that partition, and its files are read.
   */
  def takes(partition: InternalRow): Boolean = boundPartitionFilters.forall { filter =>
    try filter.eval(partition) == true
    catch { case NonFatal(_) => false }
  }

  private lazy val boundPartitionFilters: Seq[Expression] = partitionFilters.map(_.transform {
    case a: Attribute =>
      val i = partitionColumns.indexWhere(_.exprId == a.exprId)
      BoundReference(i, a.dataType, a.nullable)
  })

  /**
   * The data filters, with an IndexedValue in place of each expression that has statistics in the
   * index.
   */
  def judgedFilters: Seq[Expression] = dataFilters.map(index.withIndexedExpressions)

  /** The filters without attribute ids, which differ between two plans of the same query. */
  def normalizedFilters: Set[Expression] = (partitionFilters ++ dataFilters).map(_.transform {
    case a: AttributeReference =>
      AttributeReference(a.name, a.dataType, a.nullable, a.metadata)(ExprId(0L))
  }).toSet

  /** The same plan with `index` as the relation's file index. */
  def over(index: PlanBoundFileIndex): LogicalPlan = plan.transform {
    case r: LogicalRelation if r eq relation =>
      val replaced = r.copy(relation = files.copy(location = index)(files.sparkSession))
      replaced.copyTagsFrom(r)
      replaced
  }

  private def resolve(expression: Expression): Expression = expression.transform {
    case a: Attribute => aliases.getOrElse(a.exprId.id, a)
  }
}

object IndexedScan {

  /**
   * Converts a plan to an IndexedScan. Returns None if the plan does not have the required form, if
   * the scan may omit rows of corrupt files, or if the index can never prove the filters TRUE for
   * all rows of a file.
   */
  def of(plan: LogicalPlan): Option[IndexedScan] = plan match {
    case PhysicalOperation(projects, filters, relation: LogicalRelation) =>
      relation.relation match {
        case files: HadoopFsRelation => files.location match {
            case index: ZOrderFileIndex
                if index.joins.isEmpty && index.mayAnswer && !relation.isStreaming &&
                  files.bucketSpec.isEmpty && !ignoresCorruptFiles(files) &&
                  filters.forall(isPlain(_, relation)) =>
              Some(split(plan, projects, filters, relation, files, index)).filter { scan =>
                val mayNotBeTrue = PredicateRules(scan.judgedFilters).mayNotBeTrue
                mayNotBeTrue != IndexFilter.Always && index.hasListsFor(mayNotBeTrue)
              }
            case _ => None
          }
        case _ => None
      }
    case _ => None
  }

  private def split(
      plan: LogicalPlan,
      projects: Seq[Expression],
      filters: Seq[Expression],
      relation: LogicalRelation,
      files: HadoopFsRelation,
      index: ZOrderFileIndex): IndexedScan = {
    val same = files.sparkSession.sessionState.conf.resolver
    val partitionColumns = files.partitionSchema.toList.map(f =>
      relation.output.find(a => same(a.name, f.name)).getOrElse(
        throw new IllegalStateException(s"no attribute of the partition column ${f.name}")))
    val partitionSet = AttributeSet(partitionColumns)
    val (ofPartitions, ofData) = filters.map(spelled(relation, _)).partition(f =>
      f.references.nonEmpty && f.references.subsetOf(partitionSet))
    val aliases = projects.collect { case a: Alias => a.exprId.id -> a.child }.toMap
    IndexedScan(plan, relation, index, ofPartitions, ofData, aliases, partitionColumns)
  }

  private def spelled(relation: LogicalRelation, expression: Expression): Expression =
    expression.transform {
      case a: AttributeReference => relation.attributeMap.get(a).fold(a)(r => a.withName(r.name))
    }

  /** Whether the filter's result for a row depends only on the columns of that row. */
  private def isPlain(filter: Expression, relation: LogicalRelation): Boolean =
    filter.resolved && FilterColumn.isEvaluable(filter) &&
      filter.references.subsetOf(relation.outputSet)

  /** Whether the scan ignores corrupt files. Such a scan omits rows that the index counts. */
  private def ignoresCorruptFiles(files: HadoopFsRelation): Boolean =
    files.options.find(_._1.equalsIgnoreCase("ignoreCorruptFiles")) match {
      case Some((_, value)) => !value.trim.equalsIgnoreCase("false")
      case None => files.sparkSession.sessionState.conf.ignoreCorruptFiles
    }
}
