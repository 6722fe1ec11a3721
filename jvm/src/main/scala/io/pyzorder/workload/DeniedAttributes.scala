package io.pyzorder.workload

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Union}
import org.apache.spark.sql.execution.datasources.LogicalRelation
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
    val groups = nodes.flatMap(related)
    @scala.annotation.tailrec
    def grown(known: Set[ExprId]): Set[ExprId] = {
      val more = known ++ groups.filter(_.exists(known)).flatten
      if (more.size == known.size) known else grown(more)
    }
    grown(columns)
  }

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

  private def ids(expression: Expression): Set[ExprId] = expression.references.map(_.exprId).toSet
}
