package io.pyzorder.skipping.joins

import scala.collection.mutable.ArrayBuffer
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{Alias, DynamicPruning, Expression}
import org.apache.spark.sql.catalyst.expressions.NamedExpression
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.aggregate.{
  BaseAggregateExec, HashAggregateExec, ObjectHashAggregateExec, SortAggregateExec
}
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, Exchange}
import org.apache.spark.sql.execution.joins.{BaseJoinExec, BroadcastHashJoinExec}
import org.apache.spark.sql.execution.pyzorder.BuildSide

import io.pyzorder.common.ZOrderConf
import io.pyzorder.skipping.plan.SkippingScanExec

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
 * its keys. However, the keys of a join above such a join are pushed to the scans below it.
 *
 * @param isAdaptive whether the rule runs in adaptive execution
 */
case class PruneByJoinKeys(isAdaptive: Boolean) extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    try {
      if (maxKeys > 0 && conf.exchangeReuseEnabled && joinsKeys(plan))
        withoutSplits(plan, Set.empty)
      else plan
    } catch {
      case NonFatal(failure) =>
        logDebug("No file is skipped by join keys", failure)
        plan
    }

  private def maxKeys: Int = ZOrderConf.joinMaxKeys.get(conf)

  private def joinsKeys(plan: SparkPlan): Boolean =
    plan.exists(_.isInstanceOf[BroadcastHashJoinExec])

  /**
   * Passes keys down the plan, but not below equal exchanges that the keys would make different.
   * Spark executes equal exchanges only once, which saves more than the keys would.
   */
  @scala.annotation.tailrec
  private def withoutSplits(plan: SparkPlan, shared: Set[SparkPlan]): SparkPlan = {
    val pass = new Pass(plan, shared)
    val result = pass.withKeys(plan, Nil)
    val split = pass.split
    if (split.isEmpty) result else withoutSplits(plan, shared ++ split)
  }

  private class Pass(whole: SparkPlan, shared: Set[SparkPlan]) {

    private val exchanges = ArrayBuffer.empty[(SparkPlan, SparkPlan)]
    private var isWaiting = false

    /** The canonical forms of the exchanges that were equal and now differ. */
    def split: Set[SparkPlan] =
      if (!isWaiting) Set.empty
      else exchanges.groupBy(_._1.canonicalized).collect {
        case (before, same) if same.map(_._2.canonicalized).distinct.size > 1 => before
      }.toSet

    /**
     * A copy of the plan in which scans skip the files that contain none of the keys in `wanted`.
     * These keys are expressed in the plan's own columns, and may be pushed below:
     * - a filter, projection, sort or exchange, which treats each row independently;
     * - a union, whose branches name the columns in their own way;
     * - an aggregate, if the key is one of its grouping expressions: all rows of a group have the
     *   same key, so a group is dropped as a whole;
     * - a join (see `fromAbove`).
     *
     * All expressions must be deterministic, because the value of rand() for a row depends on the
     * rows before it. Keys are not pushed below anything else: the results of LIMIT, windows,
     * samples and observed metrics depend on which other rows exist.
     */
    def withKeys(plan: SparkPlan, wanted: Seq[JoinedKey]): SparkPlan = plan match {
      case filter: FilterExec if filter.condition.deterministic =>
        filter.withNewChildren(Seq(below(filter.child, wanted)))
      case project: ProjectExec if project.projectList.forall(_.deterministic) =>
        project.withNewChildren(Seq(below(project.child, defined(wanted, project.projectList))))
      case _: SortExec | _: ColumnarToRowTransition | _: RowToColumnarTransition =>
        plan.withNewChildren(Seq(below(plan.children.head, wanted)))
      case exchange: Exchange => exchanged(exchange, wanted)
      case union: UnionExec if union.output.map(_.exprId).distinct.size == union.output.size =>
        union.withNewChildren(union.children.map { child =>
          below(child, wanted.map(_.below(union.output.map(_.exprId).zip(child.output).toMap)))
        })
      case aggregate @ (_: HashAggregateExec | _: ObjectHashAggregateExec | _: SortAggregateExec) =>
        aggregated(aggregate.asInstanceOf[BaseAggregateExec], wanted)
      case join: BaseJoinExec => joined(join, wanted)
      case scan @ SkippingScanExec(files: FileSourceScanExec) => scanned(scan, files, wanted)
      case files: FileSourceScanExec => scanned(files, files, wanted)
      case other => other.mapChildren(withKeys(_, Nil))
    }

    private def below(child: SparkPlan, wanted: Seq[JoinedKey]): SparkPlan =
      withKeys(child,
        wanted.filter(key =>
          key.column.references.nonEmpty && key.column.references.subsetOf(child.outputSet)))

    private def defined(
        wanted: Seq[JoinedKey],
        columns: Seq[NamedExpression]): Seq[JoinedKey] = {
      val named = columns.collect { case a: Alias => a.exprId -> a.child }.toMap
      wanted.map(_.below(named))
    }

    private def aggregated(aggregate: BaseAggregateExec, wanted: Seq[JoinedKey]): SparkPlan = {
      val groups = aggregate.groupingExpressions.map(_.exprId).toSet
      val ofGroups =
        if (!aggregate.resultExpressions.forall(_.deterministic)) Nil
        else defined(wanted, aggregate.resultExpressions)
          .filter(_.column.references.forall(a => groups(a.exprId)))
      aggregate.withNewChildren(
        Seq(below(aggregate.child, defined(ofGroups, aggregate.groupingExpressions))))
    }

    /**
     * Keys of joins above an exchange delay the stage that ends with the exchange. They are not
     * passed into a broadcast if Spark prunes partitions dynamically, because Spark could then no
     * longer recognize the broadcast whose keys it uses for pruning.
     */
    private def exchanged(exchange: Exchange, wanted: Seq[JoinedKey]): SparkPlan = {
      val mayPass = wanted.nonEmpty &&
        !(shared.nonEmpty && shared(exchange.canonicalized)) &&
        !(exchange.isInstanceOf[BroadcastExchangeLike] && prunesPartitions)
      val passed = if (mayPass) wanted.map(_.copy(isWaited = true)) else Nil
      val result = exchange.withNewChildren(Seq(below(exchange.child, passed)))
      exchanges += exchange -> result
      result
    }

    private lazy val prunesPartitions: Boolean =
      whole.exists(_.expressions.exists(_.exists(_.isInstanceOf[DynamicPruning])))

    private def joined(join: BaseJoinExec, wanted: Seq[JoinedKey]): SparkPlan = {
      val (ofLeft, ofRight) = fromAbove(join, wanted)
      join match {
        case hash: BroadcastHashJoinExec if hash.buildSide == BuildLeft =>
          val left = below(hash.left, ofLeft)
          hash.withNewChildren(Seq(left, below(hash.right, ofRight ++ keysOf(hash, left))))
        case hash: BroadcastHashJoinExec =>
          val right = below(hash.right, ofRight)
          hash.withNewChildren(Seq(below(hash.left, ofLeft ++ keysOf(hash, right)), right))
        case _ => join.withNewChildren(Seq(below(join.left, ofLeft), below(join.right, ofRight)))
      }
    }

    /**
     * Given the keys of joins above a join, returns the keys that may be pushed to the join's left
     * side, and those that may be pushed to its right side. Keys may be pushed to a side whose rows
     * contribute to the result independently of each other: either side of an inner join, the left
     * side of a left outer, semi or anti join, and the right side of a right outer join.
     *
     * If such a key is also a key of this join, both sides have equal keys in every pair of
     * matching rows. In an inner, left outer or left semi join, a right row affects only the left
     * rows that it matches. If the right row's key equals no key of the join above, neither do the
     * keys of these left rows, so the join above drops them whether or not they match. The same
     * applies to the left side of a right outer join. It does not apply to an anti join, because a
     * null on the right side of NOT IN affects every row.
     */
    private def fromAbove(
        join: BaseJoinExec,
        wanted: Seq[JoinedKey]): (Seq[JoinedKey], Seq[JoinedKey]) = {
      def toRight = equal(wanted, join.leftKeys, join.rightKeys)
      def toLeft = equal(wanted, join.rightKeys, join.leftKeys)
      join.joinType match {
        case _ if !isDeterministic(join) => (Nil, Nil)
        case _: InnerLike => (wanted ++ toLeft, wanted ++ toRight)
        case LeftSemi | LeftOuter => (wanted, toRight)
        case LeftAnti => (wanted, Nil)
        case RightOuter => (toLeft, wanted)
        case _ => (Nil, Nil)
      }
    }

    private def equal(
        wanted: Seq[JoinedKey],
        keys: Seq[Expression],
        others: Seq[Expression]): Seq[JoinedKey] =
      for {
        key <- wanted
        (mine, other) <- keys.zip(others)
        if mine.semanticEquals(key.column)
      } yield key.copy(column = other)

    /** The keys that a join's broadcast side provides for its other side. */
    private def keysOf(join: BroadcastHashJoinExec, side: SparkPlan): Seq[JoinedKey] = {
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
        .fold(Seq.empty[JoinedKey]) { build =>
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

    private def isDeterministic(join: BaseJoinExec): Boolean =
      join.condition.forall(_.deterministic)

    private def scanned(
        scan: SparkPlan,
        files: FileSourceScanExec,
        wanted: Seq[JoinedKey]): SparkPlan = {
      val found = for {
        index <- ScanWithKeysExec.indexOf(scan).toSeq
        if index.maySkip
        key <- wanted
        column <- key.of(files)
        if !key.isWaited || CheapKeys(key.from, index)
      } yield key -> column
      isWaiting ||= found.exists(_._1.isWaited)
      if (found.isEmpty) scan
      else ScanWithKeysExec(
        scan,
        found.map(_._1.from).distinct.map { from =>
          ScanKeys(found.collect { case (key, column) if key.from eq from => column }.distinct)(
            from)
        })
    }
  }
}
