package io.pyzorder.skipping.joins

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.joins.BaseJoinExec

import io.pyzorder.common.ZOrderConf
import io.pyzorder.skipping.files.{FileRanges, ZOrderFileIndex}

/**
 * Skips files based on which files remain on the other side of a join ("data-induced predicates").
 * If the conditions on one side leave only some of its files, the key of every row that this side
 * can return lies between the bounds of one of these files. A row of the other side whose key lies
 * in none of these ranges has no match, so a file without such keys need not be read. This requires
 * neither a broadcast nor waiting for keys, because both sides of the join have already been
 * planned.
 *
 * A pair of keys must be compared with `=`, as in PruneByJoinKeys. RangePushdown passes the ranges
 * down the plan in the same way as the keys of a broadcast. KeyOrigins finds the files of the other
 * side.
 *
 * Each round derives ranges from the scans as the previous round left them, so what one join prunes
 * helps to prune the next. Every round rewrites a plan into a plan with the same result: a scan's
 * files bound the rows that the scan returns, whatever has already been pruned. Both sides may be
 * pruned in one round, because the ranges of an earlier round contain those of a later one.
 *
 * A filter is added only if it would skip further files in the current state of the tables. Which
 * files it skips is determined when the scan lists its files (see KeyBounds). The index evaluates
 * each scan's own conditions only once (see ScanFiles). A table is not pruned if its index is too
 * large to be loaded into the driver.
 *
 * @param isAdaptive whether the rule runs in adaptive execution
 */
case class PruneByFileRanges(isAdaptive: Boolean) extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    try {
      if (maxRanges > 0 && joinsIndexes(plan)) pruned(plan, PruneByFileRanges.Rounds) else plan
    } catch {
      case NonFatal(failure) =>
        logDebug("No file is skipped by ranges of join keys", failure)
        plan
    }

  private def maxRanges: Int = ZOrderConf.joinMaxKeys.get(conf)

  /** True if the plan joins indexed tables and is not a stage that has already been pruned. */
  private def joinsIndexes(plan: SparkPlan): Boolean =
    plan.exists { case join: BaseJoinExec => join.leftKeys.nonEmpty; case _ => false } &&
      plan.exists(ScanWithKeysExec.indexOf(_).exists(_.isWorthKeys)) &&
      (isAdaptive || !plan.exists(_.isInstanceOf[QueryStageExec]))

  @scala.annotation.tailrec
  private def pruned(plan: SparkPlan, rounds: Int): SparkPlan = {
    val result = KeyPushdown.withoutSplits[FileKeys](new Pass(plan, _))
    if ((result eq plan) || rounds == 1) result else pruned(result, rounds - 1)
  }

  private class Pass(whole: SparkPlan, shared: KeyPushdown.Shared[FileKeys])
      extends RangePushdown(whole, shared) {

    override protected def scanned(
        scan: SparkPlan,
        files: FileSourceScanExec,
        wanted: Seq[JoinedKey[FileKeys]]): SparkPlan =
      ScanWithKeysExec.indexOf(scan).filter(_.isWorthKeys).fold(scan) { index =>
        val candidates = for {
          key <- wanted
          if areOfPlan(key.from.columns, index)
          column <- key.of(files)
        } yield {
          val dataType = column.column.dataType
          val columns = key.from.columns.map(_.column)
          FileRanges(index.plan.bounds(columns, dataType, maxRanges), column.column)
        }
        val result = withUseful(candidates.distinct, index, files)
        if (result eq index) scan
        else {
          isSplitting = true
          ScanWithKeysExec.mapIndex(scan)(_ => result)
        }
      }

    /** The index, with those of the ranges added that skip further files. */
    private def withUseful(
        candidates: Seq[FileRanges],
        index: ZOrderFileIndex,
        files: FileSourceScanExec): ZOrderFileIndex = {
      val possible = candidates.filterNot(index.ranges.contains)
      if (possible.isEmpty) index
      else {
        val scan = KeyOrigins.scanOf(index, files)
        val allowed = PruneByFileRanges.MaxTests / math.max(1, scan.estimated.size)
        possible.take(allowed).foldLeft(scan) { (best, ranges) =>
          val more = best.withFilters(Nil, Seq(ranges))
          if (more.estimated.size == best.estimated.size) best
          else {
            ranges.bounds.sources.foreach(_.scan.index.keepListing())
            more
          }
        }.index
      }
    }
  }
}

object PruneByFileRanges {

  /**
   * The maximum number of successive joins across which the files of one table can be used to prune
   * those of another.
   */
  private val Rounds = 3

  /**
   * The maximum number of comparisons of one scan's files with ranges in one round. Once it is
   * reached, no further ranges are tried. A scan of more files than this is not pruned.
   */
  private val MaxTests = 500000
}
