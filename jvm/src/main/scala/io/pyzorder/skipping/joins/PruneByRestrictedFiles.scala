package io.pyzorder.skipping.joins

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, Exchange}
import org.apache.spark.sql.execution.joins.{BaseJoinExec, BroadcastHashJoinExec}

import io.pyzorder.common.ZOrderConf
import io.pyzorder.skipping.files.{KeyBounds, ZOrderFileIndex}

/**
 * Skips files based on which files the keys of broadcasts leave on the other side of a join. This
 * combines the two other rules. In `sales JOIN days ON day JOIN returns ON ticket`, the days leave
 * some files of `sales` (see PruneByJoinKeys), and the tickets in these files lie in ranges that
 * rule out files of `returns` (see PruneByFileRanges). The scan of `returns` waits for the days as
 * the scan of `sales` does, but it does not wait for `sales`, because the index knows the ranges.
 *
 * Let K be the values that a broadcast provides for a column of `sales`. Dropping the rows of
 * `sales` whose value is not in K does not change the query's result, whatever the other tables
 * contain. Then, dropping the rows of `returns` that match none of the remaining rows does not
 * change it either. The rows of `sales` may now be added again: since they never change the result,
 * it does not matter whether the scan of `sales` uses K. The same holds for several steps, and for
 * several restrictions at once: each is derived from files that contain all rows that would remain
 * if the tables were reduced one after the other. The values in K must be those that the join
 * itself uses, so the broadcast must have the same rows each time it is executed.
 *
 * There are no deadlocks: a scan waits only for broadcasts that another scan already waits for, and
 * in which no scan waits for keys. These broadcasts are not changed.
 */
object PruneByRestrictedFiles extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    try {
      if (maxRanges > 0 && plan.exists(_.isInstanceOf[ScanWithKeysExec])) pruned(plan, Rounds)
      else plan
    } catch {
      case NonFatal(failure) =>
        logDebug("No file is skipped by ranges of join keys", failure)
        plan
    }

  private def maxRanges: Int = ZOrderConf.joinMaxKeys.get(conf)

  @scala.annotation.tailrec
  private def pruned(plan: SparkPlan, rounds: Int): SparkPlan = {
    val result = KeyPushdown.withoutSplits[FileKeys](new Pass(plan, _))
    if (rounds == 1 || rangesOf(result) == rangesOf(plan)) result else pruned(result, rounds - 1)
  }

  private def rangesOf(plan: SparkPlan): Seq[Seq[ScanRanges]] =
    plan.collect { case keyed: ScanWithKeysExec => keyed.restrictions.ranges }

  /**
   * The maximum number of successive joins across which the keys of one broadcast can prune tables.
   */
  private val Rounds = 3

  /** The maximum number of ranges that are added to one scan in a round. */
  private val MaxRanges = 4

  /**
   * Ranges are used only if the values in a single file of the sources leave less than this share
   * of a scan's files. Otherwise, keys that leave only some of the sources' files would not help
   * much.
   */
  private val MaxShare = 0.7

  private class Pass(whole: SparkPlan, shared: KeyPushdown.Shared[FileKeys])
      extends RangePushdown(whole, shared) {

    /** The broadcasts for which scans wait that could start without them. */
    private val awaited: Set[SparkPlan] =
      LimitWaits.awaited(whole, isAdaptive = true).flatMap(_._2).map(_.canonicalized).toSet

    /** Such a broadcast must remain equal to the copies that the scans wait for. */
    override protected def isFinal(exchange: Exchange): Boolean =
      exchange.isInstanceOf[BroadcastExchangeLike] && awaited(exchange.canonicalized)

    /** Scans in the stage of a hash join wait for the join's broadcast, whatever it waits for. */
    override protected def joined(
        join: BaseJoinExec,
        ofLeft: Seq[JoinedKey[FileKeys]],
        ofRight: Seq[JoinedKey[FileKeys]]): SparkPlan =
      (join, super.joined(join, ofLeft, ofRight)) match {
        case (before: BroadcastHashJoinExec, after: BroadcastHashJoinExec) =>
          val ((old, _), (built, streamed)) =
            (LimitWaits.sidesOf(before), LimitWaits.sidesOf(after))
          if (old eq built) after
          else {
            // upwards, because the new sides must not be searched for the old one
            val moved = streamed.transformUp { case keyed: ScanWithKeysExec =>
              keyed.withSide(old, built)
            }
            if (after.buildSide == BuildLeft) after.withNewChildren(Seq(built, moved))
            else after.withNewChildren(Seq(moved, built))
          }
        case (_, after) => after
      }

    override protected def scanned(
        scan: SparkPlan,
        files: FileSourceScanExec,
        wanted: Seq[JoinedKey[FileKeys]]): SparkPlan = {
      val found = for {
        index <- ScanWithKeysExec.indexOf(scan).toSeq
        if index.isWorthKeys
        key <- wanted
        if areOfPlan(key.from.columns, index)
        column <- key.of(files)
        sources = key.from.columns.map(awaited(_, index, files))
        if sources.exists(!_.restrictions.isEmpty)
        share <- KeyBounds.shareOfOne(
          sources.map(_.column), KeyOrigins.scanOf(index, files), column.column)
        if share < MaxShare
      } yield (share, column.column, sources)
      if (found.isEmpty) scan
      else {
        isSplitting = true
        found.sortBy(_._1).distinct.take(MaxRanges).foldLeft(scan) {
          case (restricted, (_, column, sources)) =>
            sources.foreach(_.column.scan.index.keepListing())
            ScanWithKeysExec.withRanges(restricted, column, sources, maxRanges)
        }
      }
    }

    /**
     * The origin, with only those keys of its scan for which the other scan should wait, and that
     * are not derived from the files of the other scan itself.
     */
    private def awaited(
        origin: KeyOrigins.Origin,
        index: ZOrderFileIndex,
        files: FileSourceScanExec): KeyOrigins.Origin =
      origin.copy(keyed = origin.keyed.map { keyed =>
        def isKept(key: ScanKeys): Boolean =
          CheapKeys.ofSource(key.from, index, key.from.restrictions.nonEmpty).isEmpty &&
            key.sides.map(keyed.sides).forall(isUnchanging)
        keyed.copy(restrictions =
          keyed.restrictions.only(Some(_).filter(isKept), KeyOrigins.columnsOf(files)))
      })

    /** Whether no scan in the broadcast waits for keys, and none ever will. */
    private def isUnchanging(side: SparkPlan): Boolean = !side.exists {
      case _: ScanWithKeysExec => true
      case scan => !awaited(side.canonicalized) &&
        ScanWithKeysExec.indexOf(scan).exists(_.isWorthKeys)
    }
  }
}
