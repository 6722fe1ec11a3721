package io.pyzorder.skipping.joins

import java.util.IdentityHashMap

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.{InnerLike, LeftSemi}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, QueryStageExec}
import org.apache.spark.sql.execution.aggregate.{
  BaseAggregateExec, HashAggregateExec, ObjectHashAggregateExec, SortAggregateExec
}
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.joins.{BaseJoinExec, BroadcastHashJoinExec}
import org.apache.spark.sql.execution.pyzorder.BuildSide

/**
 * Finds the broadcast sides in a plan that provide the values of a key. For each of them, every
 * non-null value of the key in the plan's rows is a value of the returned expression in a row of
 * the broadcast side.
 *
 * As in KeyOrigins, this property is preserved by every operator that only drops, reorders or
 * repeats rows, and by an outer join if the key is null in the rows that the join adds. In
 * addition, both keys of an inner or semi join have the same values in the join's rows, so the key
 * of one side may come from the other side.
 */
private[joins] object BroadcastOrigins {

  final case class Origin(build: BuildSide, value: Expression)

  def apply(plan: SparkPlan, key: Expression): Seq[Origin] =
    new BroadcastOrigins().of(plan, key)
}

private final class BroadcastOrigins {
  import BroadcastOrigins.Origin

  /**
   * The keys that have been searched for in each plan. If joins equate the same columns repeatedly,
   * the number of ways to reach a broadcast may double with each join.
   */
  private val searched = new IdentityHashMap[SparkPlan, mutable.Set[Expression]]

  def of(plan: SparkPlan, key: Expression): Seq[Origin] =
    if (!isOf(key, plan) || !key.deterministic) Nil
    else if (!searched.computeIfAbsent(plan, _ => mutable.Set.empty).add(key.canonicalized)) Nil
    else plan match {
      case project: ProjectExec =>
        of(project.child, JoinedKey.replaced(key, JoinedKey.definitions(project.projectList)))
      case aggregate @ (_: HashAggregateExec | _: ObjectHashAggregateExec | _: SortAggregateExec) =>
        KeyOrigins.belowGroups(aggregate.asInstanceOf[BaseAggregateExec], key)
          .fold(Seq.empty[Origin])(of(aggregate.children.head, _))
      case join: BaseJoinExec => join.children.flatMap(ofSide(join, _, key)) ++ ofEqual(join, key)
      case stage: QueryStageExec => stage.plan match {
          case reused: ReusedExchangeExec =>
            KeyOrigins.renamed(reused.output, reused.child, key)
              .fold(Seq.empty[Origin])(of(reused.child, _))
          case other => of(other, key)
        }
      case _: FilterExec | _: SortExec | _: ShuffleExchangeLike | _: AQEShuffleReadExec |
          _: WholeStageCodegenExec | _: InputAdapter |
          _: ColumnarToRowTransition | _: RowToColumnarTransition =>
        of(plan.children.head, key)
      case _ => Nil
    }

  private def ofSide(join: BaseJoinExec, side: SparkPlan, key: Expression): Seq[Origin] =
    if (!isOf(key, side) || !JoinedKey.keepsValues(join, side, key)) Nil
    else join match {
      case _: BroadcastHashJoinExec if BuildSide.unapply(side).isDefined =>
        BuildSide.unapply(side).map(Origin(_, key)).toSeq
      case _ => of(side, key)
    }

  /** The origins of the keys that the join compares with this key. */
  private def ofEqual(join: BaseJoinExec, key: Expression): Seq[Origin] = {
    def others(keys: Seq[Expression], others: Seq[Expression], side: SparkPlan): Seq[Origin] =
      keys.zip(others).collect { case (mine, other) if JoinedKey.equal(mine, key) => other }
        .flatMap(ofSide(join, side, _))
    join.joinType match {
      case _: InnerLike =>
        others(join.leftKeys, join.rightKeys, join.right) ++
          others(join.rightKeys, join.leftKeys, join.left)
      case LeftSemi => others(join.leftKeys, join.rightKeys, join.right)
      case _ => Nil
    }
  }

  private def isOf(key: Expression, plan: SparkPlan): Boolean =
    key.references.nonEmpty && key.references.subsetOf(plan.outputSet)
}
