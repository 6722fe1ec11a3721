package io.pyzorder.commands.optimize

import scala.util.control.NonFatal

import io.pyzorder.catalog.TableFiles
import io.pyzorder.commands.action.{TableAction, Vacuum}
import io.pyzorder.index.store.ListedTable
import io.pyzorder.layout.select.{PartitionFiles, RewritePlan}
import io.pyzorder.publish.Writer

/** One OPTIMIZE. With DRY RUN, it neither writes anything nor takes the lock. */
private[optimize] final class OptimizeAction(context: OptimizeContext, dryRun: Boolean)
    extends TableAction[OptimizeMetrics](
      context.session,
      context.table,
      OptimizeAction.Operation) {
  import context._

  private val planner = new OptimizePlanner(context)
  private val executor = new OptimizeExecutor(context)
  private lazy val strategy = PublishStrategy.of(context, executor)

  override def validate(): Option[OptimizeMetrics] =
    if (dryRun) Some(estimate())
    else {
      strategy
      if (list().isEmpty) Some(done(Nil, RewritePlan(Nil, Nil, 1.0), Nil))
      else None
    }

  /**
   * Throws ZORDER_CONFLICT, ZORDER_UNDECLARED_COLUMNS, ZORDER_CANNOT_SWITCH_LOCATION or
   * ZORDER_SLOWER_LOOKUPS. Batches that were published before a failure remain published.
   */
  override def run(writer: Writer): OptimizeMetrics =
    try {
      Vacuum.expired(session, table, writer)
      val (files, listed) = listing()
      if (where.isEmpty) {
        writer.listed = Some(listed)
        writer.listAgain = Some(() => listing()._2)
      }
      val chosen = planner.plan(files)
      planner.checkHarm(files, chosen)
      writer.reading = filesOf(chosen.groups)
      TableFiles.checkLinks(session, table, writer.reading)
      val input = executor.inspect(chosen.groups)
      strategy.check(files)
      val plan = chosen.copy(groups = input.groups)
      if (plan.groups.isEmpty) done(files, plan, Nil)
      else {
        val published = strategy.publish(writer, files, plan, input)
        done(files, plan, published.files.map(_.size)).copy(path = published.root.toString)
      }
    } catch { case NonFatal(failure) => throw explained(failure) }

  private def listing(): (Seq[PartitionFiles], ListedTable) =
    TableFiles.listed(session, table)(list())(everyFile)

  /** What was done, with a remark if there is something to say about it. */
  private def done(
      files: Seq[PartitionFiles],
      plan: RewritePlan,
      added: Seq[Long]): OptimizeMetrics = {
    val metrics = OptimizeMetrics.of(context, files, plan, added)
    planner.remark(files, plan).fold(metrics)(metrics.withRemark)
  }

  /**
   * Estimates what `run` would do. If `run` would cluster rows, the estimate is based on a sample
   * of them.
   */
  private def estimate(): OptimizeMetrics =
    try estimated()
    catch { case NonFatal(failure) => throw explained(failure) }

  private def estimated(): OptimizeMetrics = {
    val files = list()
    strategy.check(files)
    val chosen = planner.plan(files)
    val (plan, added, estimates, verdict) =
      if (zOrderBy.isEmpty) {
        (chosen, chosen.groups.map(_.files.map(_.getLen).sum), Nil, planner.verdict(files, chosen))
      } else {
        val input = executor.inspect(chosen.groups)
        val plan = chosen.copy(groups = input.groups)
        val planned = executor.foresee(input)
        (plan, planned.map(_.bytes), planner.estimates(files, plan, planned),
          planner.sampledVerdict(files, plan, planned))
      }
    OptimizeMetrics.of(context, files, plan, added)
      .copy(dryRun = true, estimates = estimates).withRemark(verdict.sentence)
  }
}

private[optimize] object OptimizeAction {

  /** The name of the command. Other writers see it while the lock is held. */
  val Operation: String = "OPTIMIZE"
}
