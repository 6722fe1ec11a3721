package io.pyzorder.workload

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.internal.SQLConf

import io.pyzorder.index.model.DeniedColumns

/**
 * What may be recorded of a query without revealing values that a denied column contains or is
 * compared with. Spark derives conditions on other columns from comparisons with a denied column,
 * and there are many ways to compute columns from it. Instead of following the values, nothing is
 * recorded of a query that uses a denied column for anything but its result.
 *
 * @param conf the settings when the query was planned
 * @param plan the query's plan before it was optimized, which contains all that the query does
 */
private[workload] final class Confidentiality(conf: SQLConf, plan: LogicalPlan) {
  import Confidentiality._

  private val leaves: Seq[LeafNode] = plan.collectWithSubqueries { case leaf: LeafNode => leaf }

  /**
   * Whether conditions may be recorded. Spark also derives conditions from what it knows about the
   * rows of an RDD.
   */
  lazy val isRecordable: Boolean =
    leaves.forall(leaf => isTable(leaf) || leaf.isInstanceOf[LocalRelation]) &&
      !hasOutsideValues && denied(plan).isDefined

  /**
   * Whether the values of join keys may be recorded. Local rows and the limits of a range may be
   * the result of a query.
   */
  lazy val hasRecordableKeys: Boolean =
    isRecordable && leaves.forall(leaf => isTable(leaf) && !leaf.isInstanceOf[Range])

  /**
   * Whether the query reads a variable, which may contain the result of another query, or a column
   * of a query that is more than one level further out.
   */
  private def hasOutsideValues: Boolean = plan.collectWithSubqueries { case node =>
    node.expressions.exists(_.exists(part => OutsideValues(part.nodeName)))
  }.contains(true)

  private def isTable(leaf: LeafNode): Boolean = leaf match {
    case _: LogicalRelation | _: HiveTableRelation | _: DataSourceV2Relation => true
    case _: Range | _: OneRowRelation => true
    case _: CTERelationRef => true // its definition is also part of the plan
    case _ => false
  }

  /** For each common table expression, the positions of the denied columns in its output. */
  private val ofCtes = mutable.HashMap.empty[Long, Set[Int]]

  /**
   * The denied columns in the output of a plan; None if the plan uses a denied column. Operators
   * that are not listed here might use any column of their children.
   */
  private def denied(plan: LogicalPlan): Option[Set[ExprId]] = {
    val inputs = plan.children.map(denied)
    if (inputs.contains(None) || plan.subqueries.exists(!denied(_).contains(Set.empty))) None
    else {
      val input = inputs.flatten.flatten.toSet
      def areUsed(expressions: Seq[Expression]): Boolean =
        expressions.exists(_.references.exists(a => input(a.exprId)))

      /** The denied columns in the output if it consists of these columns of the input. */
      def passed(columns: Seq[Expression]): Option[Set[ExprId]] =
        if (areUsed(columns.filter(source(_).isEmpty))) None
        else Some(columns.zip(plan.output).collect {
          case (column, out) if source(column).exists(a => input(a.exprId)) => out.exprId
        }.toSet)

      def all(several: Seq[Seq[Expression]]): Option[Set[ExprId]] = {
        val found = several.map(passed)
        if (found.contains(None)) None else Some(found.flatten.flatten.toSet)
      }

      plan match {
        case ref: CTERelationRef =>
          ofCtes.get(ref.cteId).map(places => listed(ref) ++ places.map(ref.output(_).exprId))
        case leaf: LeafNode => Some(listed(leaf))
        case definition: CTERelationDef =>
          ofCtes(definition.id) =
            definition.output.indices.filter(i => input(definition.output(i).exprId)).toSet
          Some(input)
        case _ if input.isEmpty => Some(Set.empty)
        case project: Project => passed(project.projectList)
        case expand: Expand => all(expand.projections)
        case union: Union => all(union.children.map(_.output))
        case _: Filter | _: Join | _: LateralJoin | _: Aggregate | _: Window | _: Generate |
            _: Sort | _: Sample | _: Distinct | _: Deduplicate | _: GlobalLimit | _: LocalLimit |
            _: Offset | _: Tail | _: Repartition | _: RepartitionByExpression | _: SubqueryAlias |
            _: View | _: ResolvedHint | _: WithCTE |
            _: Command => // writes its child's rows
          if (areUsed(plan.expressions)) None
          else Some(input.intersect(plan.output.map(_.exprId).toSet))
        case _ => None
      }
    }
  }

  /** The attribute that an expression renames, casts, pads or prints. */
  private def source(column: Expression): Option[Attribute] = column match {
    case attribute: Attribute => Some(attribute)
    case alias: Alias => source(alias.child)
    case cast: Cast => source(cast.child)
    case printed: ToPrettyString => source(printed.child)
    case padded: StaticInvoke if padded.functionName == "readSidePadding" =>
      padded.arguments.headOption.flatMap(source)
    case _ => None
  }

  private def listed(leaf: LeafNode): Set[ExprId] = {
    val properties = leaf match {
      case relation: LogicalRelation => relation.catalogTable.map(_.properties)
      case relation: HiveTableRelation => Some(relation.tableMeta.properties)
      case relation: DataSourceV2Relation => Some(relation.table.properties.asScala.toMap)
      case _ => None
    }
    val list = DeniedColumns.of(conf, properties.getOrElse(Map.empty))
    leaf.output.filter(column => list.readIn(Seq(column.name))).map(_.exprId).toSet
  }
}

private object Confidentiality {

  /** The names of expressions that not all versions of Spark have. */
  private val OutsideValues = Set("VariableReference", "OuterScopeReference")
}
