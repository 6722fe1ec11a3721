package io.pyzorder.workload

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{
  Attribute, AttributeMap, DynamicPruning, Expression, IsNotNull, PredicateHelper,
  SubqueryExpression
}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

import io.pyzorder.skipping.files.ZOrderFileIndex

/**
 * The conditions on the rows that a query uses of one relation.
 *
 * @param filters conditions over the relation's columns
 * @param keys    expressions over the relation's columns that must equal a key of a join's other
 *                side
 */
private[workload] final case class ScanConditions(
    index: ZOrderFileIndex,
    filters: Seq[Expression],
    keys: Seq[ScanConditions.Key]) {

  /** The keys for which the join's other side has conditions of its own. */
  def joinKeys: Seq[ScanConditions.Key] = keys.filter(_.isSelective)

  /** Whether Spark derived the condition `x IS NOT NULL` from another condition or a join. */
  def isImplied(condition: Expression): Boolean = condition match {
    case IsNotNull(child) => (filters ++ keys.map(_.expression)).exists(other =>
        (other ne condition) && child.references.subsetOf(other.references))
    case _ => false
  }
}

private[workload] object ScanConditions extends PredicateHelper {

  /**
   * @param expression must equal a key of the other side of a join
   * @param other      the key of the other side
   * @param side       the plan of the other side
   */
  final case class Key(expression: Expression, other: Expression, side: LogicalPlan) {

    /** Whether the other side probably has only some of the possible keys. */
    lazy val isSelective: Boolean = side.exists {
      case Filter(condition, _) =>
        splitConjunctivePredicates(condition).exists(!_.isInstanceOf[IsNotNull])
      case _: LocalRelation => true
      case _ => false
    }
  }

  /** The indexes of the relations in a plan, without its subqueries. */
  def indexes(plan: LogicalPlan): Seq[ZOrderFileIndex] = plan.collect {
    case relation: LogicalRelation => indexOf(relation)
  }.flatten

  /** The conditions of all scans in an optimized plan, including those in subqueries. */
  def of(plan: LogicalPlan): Seq[ScanConditions] = {
    val found = mutable.ListBuffer.empty[ScanConditions]
    visit(plan, Nil, Nil, found += _)
    plan.foreach(_.expressions.foreach(_.foreach {
      case _: DynamicPruning => // a copy of one side of a join
      case subquery: SubqueryExpression => found ++= of(subquery.plan)
      case _ =>
    }))
    found.toList
  }

  private def visit(
      plan: LogicalPlan,
      filters: Seq[Expression],
      keys: Seq[Key],
      found: ScanConditions => Unit): Unit = {

    /** Visits a child with those conditions that refer only to its columns, and with more keys. */
    def pass(
        child: LogicalPlan,
        change: Expression => Expression = identity,
        more: Seq[Key] = Nil): Unit = {
      def isWithin(condition: Expression): Boolean =
        condition.references.subsetOf(child.outputSet)
      visit(
        child, filters.map(change).filter(isWithin),
        keys.map(key => key.copy(expression = change(key.expression)))
          .filter(key => isWithin(key.expression)) ++ more,
        found)
    }

    plan match {
      case relation: LogicalRelation =>
        indexOf(relation).foreach(index => found(ScanConditions(index, filters, keys)))
      case Filter(condition, child) =>
        visit(child, filters ++ splitConjunctivePredicates(condition), keys, found)
      case Project(columns, child) =>
        val named = getAliasMap(columns)
        pass(child, replaceAlias(_, named))
      case union: Union =>
        union.children.foreach { child =>
          val inner = AttributeMap(union.output.zip(child.output))
          pass(child, _.transform { case a: Attribute => inner.getOrElse(a, a) })
        }
      case join: Join =>
        val (ofLeft, ofRight) = join match {
          case ExtractEquiJoinKeys(_, left, right, _, _, _, _, _) => (left, right)
          case _ => (Nil, Nil)
        }
        val pairs = ofLeft.zip(ofRight)
        val toLeft = pairs.map { case (own, other) => Key(own, other, join.right) }
        val toRight = pairs.map { case (other, own) => Key(own, other, join.left) }
        join.joinType match {
          case _: InnerLike | LeftSemi =>
            pass(join.left, more = toLeft)
            pass(join.right, more = toRight)
          case RightOuter =>
            visit(join.left, Nil, toLeft, found)
            pass(join.right)
          case FullOuter =>
            visit(join.left, Nil, Nil, found)
            visit(join.right, Nil, Nil, found)
          case _ =>
            pass(join.left)
            visit(join.right, Nil, toRight, found)
        }
      case _: LocalLimit | _: GlobalLimit | _: Window | _: Sample =>
        plan.children.foreach(visit(_, Nil, Nil, found))
      case other => other.children.foreach(pass(_))
    }
  }

  private def indexOf(relation: LogicalRelation): Option[ZOrderFileIndex] =
    relation.relation match {
      case HadoopFsRelation(index: ZOrderFileIndex, _, _, _, _, _) => Some(index)
      case _ => None
    }
}
