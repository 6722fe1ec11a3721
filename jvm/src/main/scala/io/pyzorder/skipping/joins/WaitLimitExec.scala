package io.pyzorder.skipping.joins

import java.lang.ref.WeakReference
import java.util.UUID
import java.util.concurrent.{CancellationException, CompletableFuture, Executors, TimeUnit}
import java.util.concurrent.atomic.AtomicLong

import scala.concurrent.{Future, Promise}
import scala.util.control.NonFatal

import com.google.common.util.concurrent.ThreadFactoryBuilder
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, Range, Statistics}
import org.apache.spark.sql.execution.{BinaryExecNode, RangeExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.exchange.BroadcastExchangeLike
import org.apache.spark.sql.execution.pyzorder.BuildSide

import io.pyzorder.skipping.files.PlanState

/**
 * A broadcast side for which a scan waits although it could start without it, and the limit of this
 * wait.
 *
 * @param waiting the wait
 */
private[joins] final case class AwaitedSideExec(side: SparkPlan, limit: SparkPlan)(
    @transient waiting: PlanState.Wait)
    extends BinaryExecNode {

  override def nodeName: String = "ZOrderAwaitedSide"

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(waiting)

  override def left: SparkPlan = side

  override def right: SparkPlan = limit

  override def output: Seq[Attribute] = side.output

  override protected def doExecute(): RDD[InternalRow] = side.execute()

  /** The limit in milliseconds. None if Spark itself waits. */
  def millis: Option[Long] = limit match {
    case clock: WaitLimitExec => Some(clock.millis)
    case _ => None
  }

  /** Starts the broadcast and the time, unless they have been started already. */
  def start(): Unit = limit match {
    case clock: WaitLimitExec =>
      for (build <- BuildSide.unapply(side)) {
        val hasEnded = build.started()
        waiting.endIf(hasEnded())
      }
      clock.relationFuture
    case _ =>
  }

  /**
   * Waits, and tells whether the broadcast has ended within the limit. With adaptive execution,
   * Spark itself has waited for both stages.
   */
  def isInTime: Boolean = limit match {
    case clock: WaitLimitExec =>
      start()
      clock.relationFuture.get()
      waiting.hasEnded
    case _ => true
  }

  /** The limit has no influence on the rows, so exchanges with and without one are equal. */
  override protected def doCanonicalize(): SparkPlan = side.canonicalized

  override protected def withNewChildrenInternal(
      newLeft: SparkPlan,
      newRight: SparkPlan): AwaitedSideExec = {
    newLeft match {
      case stage: QueryStageExec => waiting.endIf(stage.isMaterialized)
      case _ =>
    }
    copy(side = newLeft, limit = newRight)(waiting)
  }
}

/**
 * A stage of adaptive execution that only waits. It ends when the broadcast is done for which a
 * scan waits, or when the scan has waited long enough. The time begins with the first wait for this
 * broadcast in the query. The stage has no result.
 *
 * A broadcast that is reused may already be done when the scan's wait begins. Adaptive execution
 * does not plan the query again in this case, so the end of this stage cannot be left to the rule.
 *
 * @param number  differs for each limit. Otherwise, Spark would reuse a stage that has ended, and
 *                would not plan the query again
 * @param millis  the limit in milliseconds
 * @param child   a plan without rows, because Spark requires a child
 * @param waiting the wait for the broadcast
 */
private[joins] final case class WaitLimitExec(
    number: Long,
    millis: Long,
    child: SparkPlan)(
    @transient waiting: PlanState.Wait)
    extends BroadcastExchangeLike {

  override def nodeName: String = "ZOrderWaitLimit"

  override val runId: UUID = UUID.randomUUID

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(waiting)

  @transient override lazy val relationFuture: CompletableFuture[Broadcast[Any]] = {
    val future = new CompletableFuture[Broadcast[Any]]
    val self = new WeakReference(this) // a query that has ended must not stay in memory
    val look: Runnable = () =>
      self.get match {
        case null => throw new CancellationException
        case limit => limit.endIfOver()
      }
    waiting.begin()
    val looks = WaitLimitExec.clock.scheduleWithFixedDelay(
      look, 0, WaitLimitExec.Interval, TimeUnit.MILLISECONDS)
    future.whenComplete { (_, failure) =>
      looks.cancel(false)
      if (failure != null) waiting.reset() // the query has been cancelled, but may run again
    }
    future
  }

  private def endIfOver(): Unit =
    try if (waiting.hasEnded || waiting.hasTaken(millis)) relationFuture.complete(null)
    catch { case NonFatal(_) => relationFuture.complete(null) }

  @transient override protected lazy val completionFuture: Future[Broadcast[Any]] = {
    val done = Promise[Broadcast[Any]]()
    relationFuture.whenComplete { (result, failure) =>
      if (failure == null) done.success(result) else done.failure(failure)
    }
    done.future
  }

  override def runtimeStatistics: Statistics = Statistics(sizeInBytes = 0, rowCount = Some(0))

  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException(s"$nodeName has no rows")

  override def simpleString(maxFields: Int): String = s"$nodeName [$millis ms]"

  override protected def withNewChildInternal(newChild: SparkPlan): WaitLimitExec =
    copy(child = newChild)(waiting)
}

private[joins] object WaitLimitExec {

  /** How often a limit checks whether it is over, in milliseconds. */
  private val Interval = 10L

  private lazy val clock = Executors.newSingleThreadScheduledExecutor(
    new ThreadFactoryBuilder().setNameFormat("pyzorder-wait-limits").setDaemon(true).build())

  private val numbers = new AtomicLong

  def apply(millis: Long, waiting: PlanState.Wait): WaitLimitExec = {
    val limit = new WaitLimitExec(
      numbers.incrementAndGet(), millis, RangeExec(Range(0, 0, 1, 1)))(waiting)
    // the stage replaces no node of the query (see ShuffledKeys)
    limit.setTagValue(SparkPlan.LOGICAL_PLAN_TAG, LocalRelation(Nil))
    limit
  }
}
