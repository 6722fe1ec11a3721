package io.pyzorder.workload

import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf

import io.pyzorder.index.model.DeniedColumns

/**
 * The attributes of a query whose conditions must not be recorded, because they could reveal values
 * that the query compares with a denied column. From `denied = 5 AND a > denied`, Spark derives
 * `a > 5`, also if `a` is a column of another table. Therefore, an attribute is denied if it is a
 * denied column, if it is computed from or the source of a denied attribute, or if a filter or join
 * has a condition on both. A condition with a subquery is also one on the subquery's output.
 *
 * @param plans the query's plan before and after it was optimized. The optimizer may have replaced
 *              `a > denied` in the above example
 */
private[workload] final class DeniedAttributes(conf: SQLConf, plans: Seq[LogicalPlan])
    extends PredicateHelper {

  private val denied: Set[ExprId] = {
    val columns = nodes.collect { case leaf: LeafNode =>
      val list = DeniedColumns.of(conf, propertiesOf(leaf))
      leaf.output.filter(column => list.readIn(Seq(column.name))).map(_.exprId)
    }.flatten.toSet
    if (columns.isEmpty) columns else closure(columns)
  }

  private def propertiesOf(leaf: LeafNode): Map[String, String] = leaf match {
    case relation: LogicalRelation =>
      relation.catalogTable.fold(Map.empty[String, String])(_.properties)
    case relation: HiveTableRelation => relation.tableMeta.properties
    case _ => Map.empty
  }

  /** Whether the expression reads a denied attribute. */
  def readIn(expression: Expression): Boolean =
    denied.nonEmpty && ids(expression).exists(denied)

  /**
   * Whether an operator of the plan or of its subqueries, other than a scan, reads a denied
   * attribute, or might do so: it is not known how cached rows, the rows of an RDD or those of a
   * CTE were computed.
   */
  def readIn(part: LogicalPlan): Boolean =
    part.collectWithSubqueries { case node => node }.exists {
      case _: LogicalRDD => true
      case _: InMemoryRelation | _: CTERelationRef => denied.nonEmpty
      case _: LeafNode => false
      case node => node.expressions.exists(readIn)
    }

  private def nodes: Seq[LogicalPlan] =
    plans.flatMap(_.collectWithSubqueries { case node => node })

  private def closure(columns: Set[ExprId]): Set[ExprId] = {
    val groups = nodes.flatMap(related) ++ references ++ copies
    @scala.annotation.tailrec
    def grown(known: Set[ExprId]): Set[ExprId] = {
      val more = known ++ groups.filter(_.exists(known)).flatten
      if (more.size == known.size) known else grown(more)
    }
    grown(columns)
  }

  /** The columns of each reference to a CTE, together with those of its definition. */
  private def references: Seq[Set[ExprId]] = {
    val defined = nodes.collect { case cte: CTERelationDef => cte.id -> cte.output }.toMap
    nodes.collect { case reference: CTERelationRef =>
      reference.output.zip(defined.getOrElse(reference.cteId, Nil))
        .map { case (own, source) => Set(own.exprId, source.exprId) }
    }.flatten
  }

  /** Each column of a table, in all scans of the table. The optimizer may have added scans. */
  private def copies: Seq[Set[ExprId]] =
    nodes.collect { case relation: LogicalRelation => relation }.flatMap { scan =>
      scan.relation match {
        case HadoopFsRelation(index, _, _, _, _, _) =>
          scan.output.map(column => (index.rootPaths, column.name) -> column.exprId)
        case _ => Nil
      }
    }.groupBy(_._1).values.map(_.map(_._2).toSet).toSeq

  /** Groups of attributes that a node relates to each other. */
  private def related(node: LogicalPlan): Seq[Set[ExprId]] = {
    val named = node.expressions.flatMap(_.collect {
      case alias: Alias => ids(alias.child) + alias.exprId
    })
    val compared = node match {
      case filter: Filter => splitConjunctivePredicates(filter.condition).map(ids)
      case join: Join => join.condition.toSeq.flatMap(splitConjunctivePredicates).map(ids)
      case _ => Nil
    }
    val produced = node match {
      case union: Union =>
        union.output.indices.map(i =>
          union.children.map(_.output(i).exprId).toSet + union.output(i).exprId)
      case _ if node.children.isEmpty || node.producedAttributes.isEmpty => Nil
      case _ => Seq(node.expressions.flatMap(ids).toSet ++ node.producedAttributes.map(_.exprId))
    }
    named ++ compared ++ produced
  }

  /** The attributes that an expression reads, including the output of its subqueries. */
  private def ids(expression: Expression): Set[ExprId] =
    expression.references.map(_.exprId).toSet ++ expression.collect {
      case OuterReference(outer) => Set(outer.exprId)
      case subquery: SubqueryExpression => subquery.plan.output.map(_.exprId).toSet
    }.flatten
}
