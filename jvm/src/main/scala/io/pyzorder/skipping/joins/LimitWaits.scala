package io.pyzorder.skipping.joins

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec

import io.pyzorder.common.ZOrderConf
import io.pyzorder.skipping.files.PlanState

/**
 * Limits how long scans wait for the keys of joins in later stages. Such a scan could start without
 * the keys, and CheapKeys can only estimate how long they take. With adaptive execution, a stage
 * starts when all stages below it are done, so the limit is itself a stage (see WaitLimitExec). It
 * is done after this time, and Spark then plans the rest of the query again. This rule removes the
 * keys that are still unknown by then, and the scan starts without them. The stages that compute
 * these keys go on, because most joins need them, too. If Spark does not adopt the new plan,
 * because it would shuffle more, the scan waits on.
 *
 * There is no limit for the keys of a join in the scan's own stage, which cannot start before they
 * are known.
 */
object LimitWaits extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    try limited(plan)
    catch {
      case NonFatal(failure) =>
        logDebug("Scans wait for join keys without a limit", failure)
        plan
    }

  private def limited(plan: SparkPlan): SparkPlan = {
    val waiting = awaited(plan)
    if (waiting.isEmpty) plan
    else plan.transform { case scan: ScanWithKeysExec =>
      val limited = for {
        (_, sides) <- waiting.find(_._1 eq scan)
        index <- ScanWithKeysExec.indexOf(scan)
      } yield withLimits(scan, sides, index.plan)
      limited.getOrElse(scan)
    }
  }

  private def withLimits(
      scan: ScanWithKeysExec,
      sides: Seq[SparkPlan],
      plan: PlanState): SparkPlan = {
    val limit = ZOrderConf.joinMaxWait.get(conf)
    val (late, inTime) = sides.filterNot(isDone).partition(plan.waitFor(_).hasTaken(limit))
    scan.without(late, NotAwaited.late(limit)) match {
      case kept: ScanWithKeysExec => kept.withSides { side =>
          if (inTime.exists(_ eq side)) {
            val waiting = plan.waitFor(side)
            AwaitedSideExec(side, WaitLimitExec(side, limit, waiting))(waiting)
          } else side
        }
      case other => other
    }
  }

  private def isDone(side: SparkPlan): Boolean = side match {
    case stage: QueryStageExec => stage.isMaterialized
    case _ => false
  }

  /** The scans that wait, each with the broadcasts without which it could start. */
  def awaited(plan: SparkPlan): Seq[(ScanWithKeysExec, Seq[SparkPlan])] = {
    val found = mutable.ArrayBuffer.empty[(ScanWithKeysExec, Seq[SparkPlan])]
    def visit(plan: SparkPlan, joined: Seq[SparkPlan]): Unit = plan match {
      case scan: ScanWithKeysExec =>
        found += scan -> scan.sides.filterNot(side => joined.exists(_.sameResult(side)))
        scan.sides.foreach(visit(_, Nil))
      case join: BroadcastHashJoinExec =>
        val (built, streamed) = sidesOf(join)
        visit(built, Nil)
        visit(streamed, built +: joined)
      case exchange: Exchange => visit(exchange.child, Nil)
      case other => other.children.foreach(visit(_, joined))
    }
    visit(plan, Nil)
    found.toSeq
  }

  /** The broadcast side of a join, and its other side. */
  def sidesOf(join: BroadcastHashJoinExec): (SparkPlan, SparkPlan) =
    if (join.buildSide == BuildLeft) (join.left, join.right) else (join.right, join.left)
}
