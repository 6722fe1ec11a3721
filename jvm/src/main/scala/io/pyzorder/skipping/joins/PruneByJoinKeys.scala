package io.pyzorder.skipping.joins

import java.util.IdentityHashMap

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.execution.joins.{BaseJoinExec, BroadcastHashJoinExec}
import org.apache.spark.sql.execution.pyzorder.BuildSide

import io.pyzorder.common.ZOrderConf
import io.pyzorder.skipping.files.{PlanState, ZOrderFileIndex}
import io.pyzorder.skipping.predicate.FilterColumn

/**
 * Skips files based on the keys of broadcast joins. A scan below a hash join skips the files that
 * contain none of the keys on the join's broadcast side. The rule makes that side a child of the
 * scan (see ScanWithKeysExec), so the scan does not start before the keys are known. With adaptive
 * execution, the rule runs on the whole plan before Spark divides it into stages, and whenever
 * Spark re-plans the rest of the query. Otherwise, it runs once, on the final plan.
 *
 * The broadcast side of a join restricts the other side if unmatched rows there do not affect the
 * result:
 * - inner: either side;
 * - left semi (IN, EXISTS): the left side, because a left row without a match is dropped.
 *
 * An outer join keeps the rows of its preserved side, an anti join (NOT EXISTS, NOT IN) returns
 * exactly the rows without a match, and an existence join (IN below OR) returns "false" for them.
 * In these joins, skipping a file would lose rows.
 *
 * A pair of keys must be compared with `=`, which is never TRUE for a null. Spark represents the
 * keys of `a <=> b` as coalesce(a, …) and isnull(a), which are not columns. Two rows join only if
 * all pairs are equal, so each pair yields its own filter. Any further join conditions only drop
 * more rows.
 *
 * A sort-merge or shuffled hash join has no broadcast side, and a shuffle reveals its size but not
 * its keys. If one side is small, its keys are broadcast after the shuffle (see ShuffledKeys). The
 * keys of one side of any join may also come from a broadcast in the plan of that side (see
 * BroadcastOrigins). In either case, the other side is restricted by all values that the broadcast
 * has for the key, if KeyPushdown.prunable allows it. In a hash join, this also restricts the
 * broadcast side. The files of one side also provide ranges of keys for the other side (see
 * PruneByFileRanges).
 *
 * Keys that restrict the rows of a broadcast side also restrict the keys that this side provides
 * (see BroadcastKeys): if dropping certain rows there does not change the result, neither does
 * dropping the rows of the other side that match only those rows.
 *
 * @param isAdaptive whether the rule runs in adaptive execution
 */
case class PruneByJoinKeys(isAdaptive: Boolean) extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    try {
      if (maxKeys == 0 || !conf.exchangeReuseEnabled) plan
      else {
        val result =
          if (joinsKeys(plan)) KeyPushdown.withoutSplits[BroadcastKeys](new Pass(plan, _)) else plan
        for (shared <- sharedState(result))
          shared.noteExchanges(result.collect { case exchange: Exchange => exchange })
        result
      }
    } catch {
      case NonFatal(failure) =>
        logDebug("No file is skipped by join keys", failure)
        plan
    }

  /** The query's state, if one of its subqueries or the query itself may also read the tables. */
  private def sharedState(plan: SparkPlan): Option[PlanState] =
    plan.collectFirst {
      case ScanWithKeysExec.Index(index) if index.isWorthKeys && index.isShared => index.plan
    }

  private def maxKeys: Int = ZOrderConf.joinMaxKeys.get(conf)

  private def joinsKeys(plan: SparkPlan): Boolean =
    plan.exists { case join: BaseJoinExec => join.leftKeys.nonEmpty; case _ => false } &&
      plan.exists(ScanWithKeysExec.indexOf(_).exists(_.isWorthKeys))

  private class Pass(whole: SparkPlan, shared: KeyPushdown.Shared[BroadcastKeys])
      extends KeyPushdown[BroadcastKeys](whole, shared) {

    private val known = new IdentityHashMap[SparkPlan, mutable.Map[Expression, BroadcastKeys]]

    /** Whether the plan is a stage of adaptive execution, in which keys have been passed down. */
    private lazy val isStage: Boolean = whole.exists(_.isInstanceOf[QueryStageExec])

    override def result: SparkPlan = withFinalSides(super.result)

    override protected def joined(
        join: BaseJoinExec,
        ofLeft: Seq[JoinedKey[BroadcastKeys]],
        ofRight: Seq[JoinedKey[BroadcastKeys]]): SparkPlan = {
      val (toLeft, toRight) = KeyPushdown.prunable(join)
      def moreOfLeft = if (toLeft) from(join, join.right, join.rightKeys, join.leftKeys) else Nil
      def moreOfRight = if (toRight) from(join, join.left, join.leftKeys, join.rightKeys) else Nil
      join match {
        case hash: BroadcastHashJoinExec if hash.buildSide == BuildLeft =>
          val ofBuilt = ofLeft ++ moreOfLeft
          val left = below(hash.left, ofBuilt)
          val right = below(hash.right, ofRight ++ keysOf(hash, left, ofBuilt))
          hash.withNewChildren(Seq(left, right))
        case hash: BroadcastHashJoinExec =>
          val ofBuilt = ofRight ++ moreOfRight
          val right = below(hash.right, ofBuilt)
          val left = below(hash.left, ofLeft ++ keysOf(hash, right, ofBuilt))
          hash.withNewChildren(Seq(left, right))
        case _ =>
          def ofShuffledRight =
            if (toLeft) shuffled(join, join.right, join.rightKeys, join.leftKeys) else Nil
          def ofShuffledLeft =
            if (toRight) shuffled(join, join.left, join.leftKeys, join.rightKeys) else Nil
          val left = below(join.left, ofLeft ++ moreOfLeft ++ ofShuffledRight)
          val right = below(join.right, ofRight ++ moreOfRight ++ ofShuffledLeft)
          join.withNewChildren(Seq(left, right))
      }
    }

    /**
     * The keys that a join's broadcast side provides for the join's other side.
     *
     * @param ofBuilt keys that restrict the rows of the broadcast side
     */
    private def keysOf(
        join: BroadcastHashJoinExec,
        side: SparkPlan,
        ofBuilt: Seq[JoinedKey[BroadcastKeys]]): Seq[JoinedKey[BroadcastKeys]] = {
      val (built, streamed) =
        if (join.buildSide == BuildLeft) (join.leftKeys, join.rightKeys)
        else (join.rightKeys, join.leftKeys)
      val isEligible = isDeterministic(join) && (join.joinType match {
        case _: InnerLike => true
        case LeftSemi => join.buildSide == BuildRight
        case _ => false
      })
      BuildSide.unapply(side)
        .filter(build => isEligible && mayProvideKeys(build))
        .fold(Seq.empty[JoinedKey[BroadcastKeys]]) { build =>
          val source = new BroadcastKeys(build, built, maxKeys, restrictions(side, built, ofBuilt))
          streamed.zipWithIndex.map { case (column, i) => JoinedKey(column, i, source) }
        }
    }

    /**
     * The keys that probably leave only some of the rows of a broadcast side. If the join has only
     * one key, that key need not be restricted: the restriction is also passed to the other side of
     * the join.
     */
    private def restrictions(
        side: SparkPlan,
        built: Seq[Expression],
        ofBuilt: Seq[JoinedKey[BroadcastKeys]]): Seq[JoinedKey[BroadcastKeys]] =
      ofBuilt.filter { key =>
        val columns = key.column.references
        val isOnlyKey = built.size == 1 && built.head.semanticEquals(key.column)
        !isOnlyKey && columns.nonEmpty && columns.subsetOf(side.outputSet) &&
        key.column.deterministic && !FilterColumn.hasSubquery(key.column) &&
        key.from.fit(key.ordinal, key.column) && CheapKeys.isSelective(key.from) &&
        key.from.isRepeatable
      }
        .map(key => key.copy(from = key.from.restrictedIf(_ => false)))
        .take(PruneByJoinKeys.MaxRestrictions)

    /**
     * Keys for one side of a join that come from broadcast sides in the plan of the other side. The
     * scans that use them wait for these broadcasts, which they would otherwise not need.
     */
    private def from(
        join: BaseJoinExec,
        other: SparkPlan,
        theirs: Seq[Expression],
        ours: Seq[Expression]): Seq[JoinedKey[BroadcastKeys]] =
      if (!isDeterministic(join)) Nil
      else for {
        (their, our) <- theirs.zip(ours)
        source <- BroadcastOrigins(other, their).filter(origin => mayProvideKeys(origin.build))
          .map(sourceOf).filter(CheapKeys.mayHelp).take(PruneByJoinKeys.MaxOrigins)
      } yield JoinedKey(our, 0, source, isWaited = true)

    /** Keys for one side of a join that Spark shuffles, if the other side is small. */
    private def shuffled(
        join: BaseJoinExec,
        other: SparkPlan,
        theirs: Seq[Expression],
        ours: Seq[Expression]): Seq[JoinedKey[BroadcastKeys]] =
      if (!isDeterministic(join) || !isAdaptive && isStage) Nil
      else for {
        build <-
          ShuffledKeys.of(other, theirs, BroadcastKeys.RowsPerKey * maxKeys, isAdaptive).toSeq
        source = new BroadcastKeys(build, build.side.output, maxKeys)
        (column, i) <- ours.zipWithIndex
      } yield JoinedKey(column, i, source, isWaited = true)

    private def sourceOf(origin: BroadcastOrigins.Origin): BroadcastKeys =
      known.computeIfAbsent(origin.build.side, _ => mutable.Map.empty)
        .getOrElseUpdate(
          origin.value.canonicalized,
          new BroadcastKeys(origin.build, Seq(origin.value), maxKeys))

    /**
     * The query and its subqueries are planned one after the other. If an equal exchange has been
     * planned without keys, it is executed in any case, and reusing its rows costs nothing.
     */
    override protected def isReused(exchange: Exchange): Boolean =
      sharedState(exchange).exists(_.hasOther(exchange))

    override protected def best(
        keys: Seq[JoinedKey[BroadcastKeys]]): Option[JoinedKey[BroadcastKeys]] =
      keys.find(key => CheapKeys.mayHelp(key.from)).orElse(keys.headOption)

    /**
     * Replaces broadcast sides that were found before keys were passed into them. A side that has
     * become a copy with keys is not used, because the keys could come from the very scan that
     * waits for this side. The scan and the side would then wait for each other.
     */
    private def withFinalSides(plan: SparkPlan): SparkPlan = {
      val moved = new IdentityHashMap[BroadcastKeys, Option[BroadcastKeys]]
      def copyOf(side: SparkPlan): Option[SparkPlan] = {
        val copy = passed(side)
        if ((copy eq side) || !copy.exists(_.isInstanceOf[ScanWithKeysExec])) Some(copy) else None
      }
      plan.transform { case scan: ScanWithKeysExec =>
        scan.movedTo(from => moved.computeIfAbsent(from, _.movedTo(copyOf)))
      }
    }

    private def mayProvideKeys(build: BuildSide): Boolean =
      (isAdaptive || !build.isStage) && !isLarge(build.rows)

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
        if index.isWorthKeys
        from <- wanted.map(_.from).distinct
        keys = wanted.filter(_.from eq from)
        columns = keys.flatMap(_.of(files)).distinct
        if columns.nonEmpty
        source <- sourceFor(keys.head, columns, index, files)
      } yield source -> columns
      // adaptive execution may pass a scan from a stage that already has its keys
      if (found.isEmpty || scan.isInstanceOf[ScanWithKeysExec]) scan
      else ScanWithKeysExec(scan, found)
    }

    /**
     * The source of a key, without the restrictions for which the scan should not wait. If the scan
     * should not wait for the key itself, records the reason and returns None.
     */
    private def sourceFor(
        key: JoinedKey[BroadcastKeys],
        columns: Seq[ScanKey],
        index: ZOrderFileIndex,
        files: FileSourceScanExec): Option[BroadcastKeys] = {
      def isWaited(restriction: JoinedKey[BroadcastKeys]): Boolean =
        key.isWaited || restriction.isWaited
      val source = key.from.restrictedIf(restriction =>
        !isWaited(restriction) || CheapKeys.ofSource(restriction.from, index).isEmpty)
      val kept = source.restrictions
      lazy val scan = KeyOrigins.scanOf(index, files)
      val obstacle =
        if (key.isWaited) CheapKeys.obstacle(source, scan, columns.map(_.column), kept.nonEmpty)
        else None
      if (obstacle.isEmpty) isSplitting ||= key.isWaited || kept.exists(isWaited)
      for (why <- obstacle; column <- columns)
        NotAwaited.add(files, column.column, s"${NotAwaited.Starts}: $why")
      if (obstacle.isEmpty) Some(source) else None
    }
  }
}

object PruneByJoinKeys {

  /**
   * For each key of a join, the maximum number of broadcast sides in the plan of one side of the
   * join that provide values.
   */
  private val MaxOrigins = 4

  /** The maximum number of keys that restrict the rows of one broadcast side. */
  private val MaxRestrictions = 4
}
