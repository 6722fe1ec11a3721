package io.pyzorder.workload

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{
  CTERelationDef, CTERelationRef, LogicalPlan, Union
}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf

import io.pyzorder.index.model.DeniedColumns

/**
 * The attributes of a query whose conditions must not be recorded, because they could reveal values
 * that the query compares with a denied column. From `denied = 5 AND denied = a`, Spark derives
 * `a = 5`, also if `a` is a column of another table. Therefore, an attribute is denied if it is a
 * denied column, or if it is computed from, compared by equality with, or the source of a denied
 * attribute.
 *
 * @param plans the query's plan before and after it was optimized. The optimizer may have replaced
 *              `denied = a` in the above example
 */
private[workload] final class DeniedAttributes(conf: SQLConf, plans: Seq[LogicalPlan]) {

  private val denied: Set[ExprId] = {
    val columns = nodes.collect { case relation: LogicalRelation =>
      val list =
        DeniedColumns.of(conf, relation.catalogTable.fold(Map.empty[String, String])(_.properties))
      relation.output.filter(column => list.readIn(Seq(column.name))).map(_.exprId)
    }.flatten.toSet
    if (columns.isEmpty) columns else closure(columns)
  }

  /** Whether the expression reads a denied attribute. */
  def readIn(expression: Expression): Boolean =
    denied.nonEmpty && expression.references.exists(a => denied(a.exprId))

  /** Whether an operator of the plan, other than a scan, reads a denied attribute. */
  def readIn(part: LogicalPlan): Boolean =
    denied.nonEmpty &&
      part.exists(node => !node.isInstanceOf[LogicalRelation] && node.expressions.exists(readIn))

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
      case equal @ (_: EqualTo | _: EqualNullSafe) => ids(equal)
      case in: InSubquery => ids(in) ++ in.query.plan.output.map(_.exprId)
    })
    val produced = node match {
      case union: Union =>
        union.output.indices.map(i =>
          union.children.map(_.output(i).exprId).toSet + union.output(i).exprId)
      case _ if node.children.isEmpty || node.producedAttributes.isEmpty => Nil
      case _ => Seq(node.expressions.flatMap(ids).toSet ++ node.producedAttributes.map(_.exprId))
    }
    named ++ produced
  }

  private def ids(expression: Expression): Set[ExprId] =
    expression.references.map(_.exprId).toSet ++
      expression.collect { case OuterReference(outer) => outer.exprId }
}
