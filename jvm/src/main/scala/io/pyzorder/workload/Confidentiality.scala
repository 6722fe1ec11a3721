package io.pyzorder.workload

import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.internal.SQLConf

import io.pyzorder.index.model.DeniedColumns

/**
 * What may be recorded of a query without revealing values that a denied column contains or is
 * compared with. Spark derives conditions on other columns from comparisons with a denied column,
 * and there are many ways to compute columns from it. Instead of following the values, nothing is
 * recorded of a query that uses a denied column for anything but its result.
 *
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

  /** Whether the values of join keys may be recorded. Local rows may be the result of a query. */
  lazy val hasRecordableKeys: Boolean = isRecordable && leaves.forall(isTable)

  /**
   * Whether the query reads a variable, which may contain the result of another query, or a column
   * of a query that is more than one level further out.
   */
  private def hasOutsideValues: Boolean = plan.collectWithSubqueries { case node =>
    node.expressions.exists(_.exists(part => OutsideValues(part.nodeName)))
  }.contains(true)

  private def isTable(leaf: LeafNode): Boolean = leaf match {
    case _: LogicalRelation | _: HiveTableRelation | _: Range | _: OneRowRelation => true
    case _: CTERelationRef => true // its definition is also part of the plan
    case _ => false
  }

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
      plan match {
        case leaf: LeafNode => Some(listed(leaf))
        case _ if input.isEmpty => Some(Set.empty)
        case project: Project =>
          val (passed, computed) = project.projectList.partition(source(_).isDefined)
          if (areUsed(computed)) None
          else Some(passed.filter(column => source(column).exists(a => input(a.exprId)))
              .map(_.exprId).toSet)
        case _: Filter | _: Join | _: Aggregate | _: Window | _: Generate | _: Sort |
            _: GlobalLimit | _: LocalLimit | _: Distinct | _: SubqueryAlias | _: View |
            _: ResolvedHint | _: WithCTE | _: Command => // a command writes its child's rows
          if (areUsed(plan.expressions)) None
          else Some(input.intersect(plan.output.map(_.exprId).toSet))
        case _ => None
      }
    }
  }

  /** The attribute that an expression of a projection renames or casts. */
  private def source(column: Expression): Option[Attribute] = column match {
    case attribute: Attribute => Some(attribute)
    case alias: Alias => source(alias.child)
    case cast: Cast => source(cast.child)
    case _ => None
  }

  private def listed(leaf: LeafNode): Set[ExprId] = {
    val properties = leaf match {
      case relation: LogicalRelation => relation.catalogTable.map(_.properties)
      case relation: HiveTableRelation => Some(relation.tableMeta.properties)
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
