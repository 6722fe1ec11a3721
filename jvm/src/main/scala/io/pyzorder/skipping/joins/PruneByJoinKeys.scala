package io.pyzorder.skipping.joins

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.joins.{BaseJoinExec, BroadcastHashJoinExec}
import org.apache.spark.sql.execution.pyzorder.BuildSide

import io.pyzorder.common.ZOrderConf
import io.pyzorder.skipping.files.ZOrderFileIndex

/**
 * Skips files by the keys of broadcast joins. A scan below a hash join skips the files that contain
 * none of the keys on the join's broadcast side. The rule makes that side a child of the scan (see
 * ScanWithKeysExec), so the scan does not start before the keys are known. With adaptive execution,
 * the rule runs on the whole plan before Spark divides it into stages, and whenever Spark re-plans
 * the rest of the query. Otherwise, it runs once, on the final plan.
 *
 * A join is eligible if unmatched rows on its scanned side do not affect the result. The scanned
 * side depends on the join type:
 * - inner: either side;
 * - left semi (IN, EXISTS): the left side, because a left row without a match is dropped.
 *
 * An outer join keeps the rows of its preserved side, an anti join (NOT EXISTS, NOT IN) returns
 * exactly the rows without a match, and an existence join (IN below OR) returns "false" for them.
 * In these joins, skipping a file would lose rows. The other side of an outer join could be pruned
 * by the keys of the preserved side, but Spark never broadcasts the preserved side in a hash join.
 *
 * A pair of keys must be compared by `=`, which is never TRUE for a null. Spark represents the keys
 * of `a <=> b` as coalesce(a, …) and isnull(a), which are not columns. Two rows join only if all
 * pairs are equal, so each pair yields its own filter. Any further join conditions only drop more
 * rows.
 *
 * Sort-merge and shuffled hash joins provide no keys, because a shuffle reveals its size but not
 * its keys. However, the keys of a join above such a join are pushed to the scans below it, and
 * the files of one side provide ranges of keys for the other (see PruneByFileRanges).
 *
 * @param isAdaptive whether the rule runs in adaptive execution
 */
case class PruneByJoinKeys(isAdaptive: Boolean) extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    try {
      if (maxKeys > 0 && conf.exchangeReuseEnabled && joinsKeys(plan))
        KeyPushdown.withoutSplits(new Pass(plan, _))
      else plan
    } catch {
      case NonFatal(failure) =>
        logDebug("No file is skipped by join keys", failure)
        plan
    }

  private def maxKeys: Int = ZOrderConf.joinMaxKeys.get(conf)

  private def joinsKeys(plan: SparkPlan): Boolean =
    plan.exists(_.isInstanceOf[BroadcastHashJoinExec])

  private class Pass(whole: SparkPlan, shared: Set[SparkPlan])
      extends KeyPushdown[BroadcastKeys](whole, shared) {

    override protected def joined(
        join: BaseJoinExec,
        ofLeft: Seq[JoinedKey[BroadcastKeys]],
        ofRight: Seq[JoinedKey[BroadcastKeys]]): SparkPlan =
      join match {
        case hash: BroadcastHashJoinExec if hash.buildSide == BuildLeft =>
          val left = below(hash.left, ofLeft)
          hash.withNewChildren(Seq(left, below(hash.right, ofRight ++ keysOf(hash, left))))
        case hash: BroadcastHashJoinExec =>
          val right = below(hash.right, ofRight)
          hash.withNewChildren(Seq(below(hash.left, ofLeft ++ keysOf(hash, right)), right))
        case _ => join.withNewChildren(Seq(below(join.left, ofLeft), below(join.right, ofRight)))
      }

    /** The keys that a join's broadcast side provides for its other side. */
    private def keysOf(
        join: BroadcastHashJoinExec,
        side: SparkPlan): Seq[JoinedKey[BroadcastKeys]] = {
      val (built, streamed) =
        if (join.buildSide == BuildLeft) (join.leftKeys, join.rightKeys)
        else (join.rightKeys, join.leftKeys)
      val isEligible = isDeterministic(join) && (join.joinType match {
        case _: InnerLike => true
        case LeftSemi => join.buildSide == BuildRight
        case _ => false
      })
      BuildSide.unapply(side)
        .filter(build => isEligible && (isAdaptive || !build.isStage) && !isLarge(build.rows))
        .fold(Seq.empty[JoinedKey[BroadcastKeys]]) { build =>
          val from = new BroadcastKeys(build, built, maxKeys)
          streamed.zipWithIndex.map { case (column, i) => JoinedKey(column, i, from) }
        }
    }

    /**
     * Whether the plan of a broadcast side is too large to be copied into each scan that uses its
     * keys.
     */
    private def isLarge(plan: SparkPlan): Boolean =
      plan.collect { case scan: ScanWithKeysExec => scan }.size > 16

    override protected def scanned(
        scan: SparkPlan,
        files: FileSourceScanExec,
        wanted: Seq[JoinedKey[BroadcastKeys]]): SparkPlan = {
      val found = for {
        index <- ScanWithKeysExec.indexOf(scan).toSeq
        if index.couldSkip
        key <- wanted
        column <- key.of(files)
        if !key.isWaited || isCheap(key, column, index, files)
      } yield key -> column
      isSplitting ||= found.exists(_._1.isWaited)
      if (found.isEmpty) scan
      else ScanWithKeysExec(
        scan,
        found.map(_._1.from).distinct.map { from =>
          ScanKeys(found.collect { case (key, column) if key.from eq from => column }.distinct)(
            from)
        })
    }

    /** Whether the scan should wait for the key. If not, records why. */
    private def isCheap(
        key: JoinedKey[BroadcastKeys],
        column: ScanKey,
        index: ZOrderFileIndex,
        files: FileSourceScanExec): Boolean = {
      val obstacle = CheapKeys.obstacle(key.from, index)
      obstacle.foreach(why => NotAwaited.add(files, column.column, why))
      obstacle.isEmpty
    }
  }
}
