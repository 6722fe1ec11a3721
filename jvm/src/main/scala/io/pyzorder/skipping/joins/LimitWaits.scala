package io.pyzorder.skipping.joins

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, Exchange}
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
 * because it would shuffle more, the scan waits on. Without adaptive execution, the scan itself
 * observes the limit (see ScanWithKeysExec).
 *
 * There is no limit for keys that Spark waits for in any case before it starts the scan. With
 * adaptive execution, these are the keys of a join in the scan's own stage. Otherwise, they are the
 * keys of any join above the scan, because a join fetches its broadcast before it executes its
 * other side. This does not apply to scans in a broadcast, which starts at once.
 *
 * @param isAdaptive whether the rule runs in adaptive execution
 */
case class LimitWaits(isAdaptive: Boolean) extends Rule[SparkPlan] {
  import LimitWaits._

  override def apply(plan: SparkPlan): SparkPlan =
    try limited(plan)
    catch {
      case NonFatal(failure) =>
        logDebug("Scans wait for join keys without a limit", failure)
        plan
    }

  private def limited(plan: SparkPlan): SparkPlan = {
    val waiting = awaited(plan, isAdaptive)
    val limit = ZOrderConf.joinMaxWait.get(conf)
    val progress = new Progress(limit)
    plan.transform { case scan: ScanWithKeysExec =>
      val limited = for {
        (_, sides) <- waiting.find(_._1 eq scan)
        index <- ScanWithKeysExec.indexOf(scan)
      } yield withLimits(scan, sides, limit, progress.of(_, index.plan))
      limited.getOrElse(scan)
    }
  }

  private def withLimits(
      scan: ScanWithKeysExec,
      sides: Seq[SparkPlan],
      limit: Long,
      progress: SparkPlan => Progress.State): SparkPlan = {
    val states = sides.map(side => side -> progress(side))
    val late = states.collect { case (side, Progress.Late) => side }
    scan.without(late, NotAwaited.late(limit)) match {
      case kept: ScanWithKeysExec => kept.withSides { side =>
          states.collectFirst {
            case (awaited, Progress.Pending(waiting)) if awaited eq side =>
              AwaitedSideExec(side, WaitLimitExec(limit, waiting))(waiting)
          }.getOrElse(side)
        }
      case other => other
    }
  }
}

object LimitWaits {

  /** The scans that wait, each with the broadcasts without which it could start. */
  private[joins] def awaited(
      plan: SparkPlan,
      isAdaptive: Boolean): Seq[(ScanWithKeysExec, Seq[SparkPlan])] = {
    val found = mutable.ArrayBuffer.empty[(ScanWithKeysExec, Seq[SparkPlan])]
    def visit(plan: SparkPlan, joined: Seq[SparkPlan]): Unit = plan match {
      case scan: ScanWithKeysExec =>
        found += scan -> scan.sides.filterNot(side => joined.exists(_.sameResult(side)))
        scan.sides.foreach(visit(_, Nil))
      case join: BroadcastHashJoinExec =>
        val (built, streamed) = sidesOf(join)
        visit(built, Nil)
        visit(streamed, built +: joined)
      case broadcast: BroadcastExchangeLike => visit(broadcast.child, Nil)
      case exchange: Exchange => visit(exchange.child, if (isAdaptive) Nil else joined)
      case other => other.children.foreach(visit(_, joined))
    }
    visit(plan, Nil)
    found.toSeq
  }

  /** The broadcast side of a join, and its other side. */
  private[joins] def sidesOf(join: BroadcastHashJoinExec): (SparkPlan, SparkPlan) =
    if (join.buildSide == BuildLeft) (join.left, join.right) else (join.right, join.left)

  /**
   * The states of broadcasts. They may change at any time, so each is determined only once for all
   * scans. Otherwise, one of two equal exchanges could lose its keys, and Spark would execute both.
   */
  private final class Progress(limit: Long) {
    private val known = mutable.HashMap.empty[PlanState.Wait, Progress.State]

    def of(side: SparkPlan, plan: PlanState): Progress.State = {
      val wait = plan.waitFor(side)
      known.getOrElseUpdate(
        wait,
        if (isDone(side) || wait.hasEnded) Progress.Done
        else if (wait.hasTaken(limit)) Progress.Late
        else Progress.Pending(wait))
    }

    private def isDone(side: SparkPlan): Boolean = side match {
      case stage: QueryStageExec => stage.isMaterialized
      case _ => false
    }
  }

  private object Progress {
    sealed trait State
    case object Done extends State
    case object Late extends State
    final case class Pending(waiting: PlanState.Wait) extends State
  }
}
