package io.pyzorder.skipping.joins

import org.apache.spark.SparkEnv
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.pyzorder.BuildSide

/**
 * Broadcasts the keys of a small side of a sort-merge or shuffled hash join. Spark shuffles such a
 * side, for example because broadcasts are disabled. The scans that use the keys wait for this
 * broadcast as they would for the broadcast side of a hash join.
 *
 * The broadcast reads the rows that have been shuffled for the join. Spark executes equal shuffles
 * only once, so the side is not read a second time, and the join sees the same rows. A shuffle of
 * rows that wait for keys is not used, so there are no deadlocks (see ScanWithKeysExec).
 *
 * As for Spark's runtime Bloom filters, the side must not be larger than
 * `spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold`. Because even a small file can
 * contain very many rows, each task sends a key only once, and no more keys than are needed to see
 * that there are too many.
 */
private[joins] object ShuffledKeys {

  /**
   * The broadcast of a side's keys. None if the side is not small.
   *
   * @param side       the side as it appears below the join
   * @param keys       the join's keys in terms of the side's columns
   * @param maxRows    the maximum number of rows whose keys are used
   * @param isAdaptive whether adaptive execution combines small partitions of a shuffle
   */
  def of(
      side: SparkPlan,
      keys: Seq[Expression],
      maxRows: Long,
      isAdaptive: Boolean): Option[BuildSide] =
    side match {
      case _: SortExec | _: AQEShuffleReadExec =>
        of(side.children.head, keys, maxRows, isAdaptive)
      case Shuffled(rows)
          if keys.nonEmpty && !side.supportsColumnar && obstacle(side, rows).isEmpty =>
        BuildSide.unapply(broadcast(if (isAdaptive) side else CoalesceExec(Tasks, side), keys,
            maxRows))
      case _ => None
    }

  /**
   * Why the keys of a side that the join shuffles are not broadcast. None if this is not known.
   * Only for display.
   */
  def obstacle(side: SparkPlan): Option[String] = side match {
    case Shuffled(rows) => obstacle(side, rows)
    case _: SortExec | _: AQEShuffleReadExec | _: WholeStageCodegenExec | _: InputAdapter =>
      obstacle(side.children.head)
    case _ => None
  }

  private def obstacle(shuffle: SparkPlan, rows: SparkPlan): Option[String] =
    CheapKeys.ofShuffled(rows).orElse(
      if (isSmall(shuffle)) None
      else Some("it is larger than spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold"))

  /** Matches a shuffle, or a stage of adaptive execution for one, by the plan that it shuffles. */
  private object Shuffled {
    def unapply(plan: SparkPlan): Option[SparkPlan] = plan match {
      case shuffle: ShuffleExchangeLike => Some(shuffle.child)
      case stage: ShuffleQueryStageExec => unapply(stage.plan)
      case reused: ReusedExchangeExec => unapply(reused.child)
      case _ => None
    }
  }

  /**
   * Whether the side is so small that the driver can take its keys. If it could not, the query
   * would fail.
   */
  private def isSmall(shuffle: SparkPlan): Boolean = {
    val bytes = size(shuffle)
    val limit = SparkEnv.get.conf.getSizeAsBytes("spark.driver.maxResultSize", "1g")
    val largest = JavaUtils.byteStringAsBytes(
      shuffle.conf.getConfString("spark.sql.maxBroadcastTableSize", "8g"))
    bytes <= shuffle.conf.runtimeFilterCreationSideThreshold &&
    (limit <= 0 || bytes * 20 <= limit) && bytes * 20 + LeastTable <= largest
  }

  /** Spark's hash table takes up 64 MiB even for a few keys. This is twice as much. */
  private val LeastTable = 128L << 20

  /** The size of the shuffled rows or, if the shuffle is not done, of what it reads. */
  private def size(shuffle: SparkPlan): BigInt = shuffle match {
    case stage: ShuffleQueryStageExec if stage.isMaterialized =>
      stage.getRuntimeStatistics.sizeInBytes
    case Shuffled(rows) =>
      val numbers = rows.collect { case range: RangeExec => range.numElements }.sum
      CheapKeys.bytesOf(rows) + numbers * java.lang.Long.BYTES
  }

  private def broadcast(shuffled: SparkPlan, keys: Seq[Expression], maxRows: Long): SparkPlan = {
    val columns = keys.map {
      case column: Attribute => column
      case key => Alias(key, JoinedKey.displayed(key).sql)()
    }
    val own = columns.map(_.toAttribute)
    val distinct = HashAggregateExec(
      None, isStreaming = false, None, own, Nil, Nil, 0, own, ProjectExec(columns, shuffled))
    val limited = LocalLimitExec((maxRows + 1).min(Int.MaxValue.toLong).toInt, distinct)
    limited.setTagValue(Source, shuffled)
    val exchange = BuildSide.broadcast(limited, limited.output)
    // Adaptive execution replaces the logical node of a stage by the stage. This stage replaces
    // nothing, so it gets a node that is not in the query's plan.
    exchange.setTagValue(SparkPlan.LOGICAL_PLAN_TAG, LocalRelation(limited.output))
    exchange
  }

  /**
   * The plan whose rows have the keys. If the broadcast reads a shuffle, this is the plan below it.
   * The limit of such a broadcast may be ignored: if it drops any keys, there are too many, and
   * none is used.
   */
  def rowsOf(build: BuildSide): SparkPlan = shuffleOf(build) match {
    case Some(Shuffled(rows)) => rows
    case _ => build.rows
  }

  /** Whether the keys can be broadcast without executing anything else. */
  def isDone(build: BuildSide): Boolean = shuffleOf(build).exists {
    case stage: ShuffleQueryStageExec => stage.isMaterialized
    case _ => false
  }

  private def shuffleOf(build: BuildSide): Option[SparkPlan] = build.rows.getTagValue(Source).map {
    case combined: CoalesceExec => combined.child
    case shuffle => shuffle
  }

  /** The shuffle that a broadcast reads. */
  private val Source = TreeNodeTag[SparkPlan]("zorder.shuffledKeys")

  /** The number of tasks that read the shuffle without adaptive execution. */
  private val Tasks = 8
}
