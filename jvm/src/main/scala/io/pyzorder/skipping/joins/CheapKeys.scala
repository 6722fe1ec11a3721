package io.pyzorder.skipping.joins

import org.apache.spark.sql.catalyst.expressions.{Expression, IsNotNull, PredicateHelper}
import org.apache.spark.sql.execution.{FileSourceScanExec, FilterExec, LocalTableScanExec}
import org.apache.spark.sql.execution.{RangeExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{QueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeLike}

import io.pyzorder.skipping.files.{FilteredScan, KeyBounds, ZOrderFileIndex}

/**
 * Decides whether a scan that could start immediately should wait for the keys of a broadcast.
 *
 * The broadcast side must be selective: without a condition on its rows, it probably contains all
 * keys. It must also be able to start immediately, and read at most half as many bytes as the scan.
 * Waiting then takes no longer than the scan itself would. The broadcast side must not contain a
 * scan that itself waits for keys. None of these conditions applies if the broadcast has already
 * been executed. In any case, the broadcast side must have the same rows each time it is executed,
 * because the scan cannot determine whether the join reuses the same broadcast. A scan never waits
 * for keys of a column if almost all of its files may contain any value of that column.
 */
private[joins] object CheapKeys extends PredicateHelper {

  /**
   * Why the scan should not wait, as a sentence about the key. None if it should wait.
   *
   * @param columns      the scan's columns that must equal the keys
   * @param isRestricted whether the broadcast side's rows are restricted by the keys of another
   *                     join, for which the scan should also wait
   */
  def obstacle(
      keys: BroadcastKeys,
      scan: FilteredScan,
      columns: Seq[Expression],
      isRestricted: Boolean = false): Option[String] =
    ofSource(keys, scan.index, isRestricted)
      .map(why => s"the other side is not cheap, because $why")
      .orElse(
        if (columns.forall(c =>
            KeyBounds.isEverywhere(scan, c) && !KeyBounds.hasSketches(scan, c)))
          Some(Everywhere)
        else None)

  /** Why keys of a column are of no use if its values in each file span all values. */
  val Everywhere = "almost all files may contain any of its values"

  /**
   * Why the broadcast side is too costly to wait for, whichever columns must equal the keys. None
   * if it is cheap.
   */
  def ofSource(
      keys: BroadcastKeys,
      index: ZOrderFileIndex,
      isRestricted: Boolean = false): Option[String] =
    ofAnyScan(keys, isRestricted).orElse(ofBytes(keys, index))
      .orElse(keys.alternatives.flatMap(ofSource(_, index, isRestricted = false)).headOption)

  /** Whether the keys are selective, and some scan should wait for them. */
  def mayHelp(keys: BroadcastKeys): Boolean =
    isSelective(keys) && ofAnyScan(keys, isRestricted = false).isEmpty &&
      keys.alternatives.forall(mayHelp)

  /**
   * Whether skipping files of the scan may save more time than collecting the keys takes. The keys
   * of a row take about as long to collect as a row of the scan takes to read. If nothing restricts
   * the broadcast side's rows, their keys are likely to be in all files, unless there are only few
   * rows. The same is true if the bounds of almost all files enclose any key. Sketches help only if
   * there are few keys.
   *
   * @param rows    the number of rows that have been broadcast
   * @param columns the scan's columns that must equal the keys
   */
  def areWorthCollecting(
      keys: BroadcastKeys,
      rows: Long,
      scan: FilteredScan,
      columns: Seq[Expression]): Boolean =
    rows <= FewRows ||
      (isSelective(keys) || keys.restrictions.nonEmpty ||
        rows * BytesPerRow <= scan.index.sizeInBytes) &&
      !columns.forall(KeyBounds.isEverywhere(scan, _))

  private val FewRows = 10000L

  /** See areWorthCollecting. About fifty rows of a table have this size. */
  private val BytesPerRow = 2000L

  /** Whether the source probably provides only some of the possible keys. */
  def isSelective(keys: BroadcastKeys): Boolean =
    isSelective(ShuffledKeys.rowsOf(keys.build)) && keys.alternatives.forall(isSelective)

  /**
   * Why scans should not wait for the keys of these rows, which Spark shuffles for a join. Keys of
   * other joins must not restrict the rows, because the shuffle for the join would then differ from
   * the one whose keys are broadcast.
   */
  def ofShuffled(rows: SparkPlan): Option[String] =
    if (!RepeatableRows(rows)) Some(mayDiffer(rows))
    else ofRows(rows, isRestricted = false).orElse(
      if (rows.exists(ScanWithKeysExec.indexOf(_).exists(_.isWorthKeys)))
        Some("it reads a large table with a skipping index")
      else None)

  private def ofAnyScan(keys: BroadcastKeys, isRestricted: Boolean): Option[String] = {
    val rows = ShuffledKeys.rowsOf(keys.build)
    if (!keys.isRepeatable) Some(mayDiffer(rows))
    else if (isDone(keys)) None
    else ofRows(rows, isRestricted)
  }

  private def ofRows(rows: SparkPlan, isRestricted: Boolean): Option[String] =
    if (!startsAtOnce(rows)) Some("it needs a shuffle or waits for keys itself")
    else if (!isRestricted && !isSelective(rows)) Some("it has no condition")
    else None

  private def mayDiffer(rows: SparkPlan): String = {
    val of = RepeatableRows.doubtful(rows).map(node => s"the rows of its ${node.nodeName}")
    s"${of.getOrElse("its rows")} may differ each time it is executed"
  }

  private def ofBytes(keys: BroadcastKeys, index: ZOrderFileIndex): Option[String] =
    if (!isDone(keys) &&
      bytesOf(ShuffledKeys.rowsOf(keys.build)) * 2 > index.sizeInBytes)
      Some("it reads more than half as many bytes as the scan")
    else None

  private def isDone(keys: BroadcastKeys): Boolean =
    keys.build.isDone || ShuffledKeys.isDone(keys.build)

  private def startsAtOnce(plan: SparkPlan): Boolean = !plan.exists {
    case _: ShuffleExchangeLike | _: ScanWithKeysExec => true
    case stage: ShuffleQueryStageExec => !stage.isMaterialized
    case _ => false
  }

  private def isSelective(plan: SparkPlan): Boolean = plan.exists {
    case filter: FilterExec =>
      splitConjunctivePredicates(filter.condition).exists(!_.isInstanceOf[IsNotNull])
    case scan: FileSourceScanExec => scan.partitionFilters.exists(!_.isInstanceOf[IsNotNull])
    case _: LocalTableScanExec => true
    case stage: QueryStageExec => isSelective(stage.plan)
    case reused: ReusedExchangeExec => isSelective(reused.child)
    case _ => false
  }

  /** The number of bytes that a plan reads from files. */
  def bytesOf(plan: SparkPlan): BigInt = plan.collectLeaves().map(bytesOfLeaf).sum

  private def bytesOfLeaf(leaf: SparkPlan): BigInt = leaf match {
    case scan: FileSourceScanExec => scan.relation.location.sizeInBytes
    case stage: QueryStageExec if !stage.isMaterialized => bytesOf(stage.plan)
    case _: LocalTableScanExec | _: RangeExec | _: QueryStageExec | _: ReusedExchangeExec => 0
    case _ => Long.MaxValue
  }
}
