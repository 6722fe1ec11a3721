package io.pyzorder.commands.optimize

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.types._

import io.pyzorder.commands.action.ResultColumns
import io.pyzorder.layout.select.{OpenedShare, PartitionFiles, RewritePlan}

/**
 * What an OPTIMIZE did or would do. The statement returns this as one row, in the format of Delta's
 * metrics.
 *
 * @param path         the table's folder
 * @param added        the size in bytes of each new file
 * @param removed      the size in bytes of each replaced file
 * @param clustered    the size in bytes of each considered file that was already clustered as
 *                     requested
 * @param fresh        the size in bytes of each replaced file that was not clustered as requested
 * @param partitions   number of table partitions with new files
 * @param batches      number of batches, which are published one after the other
 * @param considered   number of files that were considered
 * @param strategy     `zorder`, `hilbert`, `linear` or `compaction`
 * @param clusteredBy  names of the clustering columns
 * @param tableColumns number of columns in the table
 * @param withStatistics number of columns that have statistics in the new files
 * @param tasks        number of new files that rows were assigned to
 * @param started      start time in milliseconds since the epoch
 * @param ended        end time in milliseconds since the epoch
 * @param estimates    for each clustering column, the share of the files that a query on the column
 *                     opens, before and after the OPTIMIZE; empty if not estimated
 * @param remark       the verdict of a DRY RUN, a sentence if there was nothing to do or if no
 *                     file can be skipped afterwards, and a sentence about any poorly clustered
 *                     files that are not rewritten
 */
final case class OptimizeMetrics(
    path: String,
    added: Seq[Long],
    removed: Seq[Long],
    clustered: Seq[Long],
    fresh: Seq[Long],
    partitions: Long,
    batches: Long,
    considered: Long,
    strategy: String,
    clusteredBy: Seq[String],
    tableColumns: Long,
    withStatistics: Long,
    tasks: Long,
    started: Long,
    ended: Long,
    dryRun: Boolean,
    estimates: Seq[(OpenedShare, OpenedShare)],
    remark: Option[String]) {
  import OptimizeMetrics._

  /** The result as a row with the columns of `output`. */
  def toRow: Row = Row(path,
    Row(
      added.length.toLong, removed.length.toLong, sizes(added), sizes(removed), partitions,
      zOrderStats, removed.length.toLong, batches, considered, considered - removed.length, false,
      started, ended, tasks, tableColumns, withStatistics, clusteredBy, dryRun,
      estimatedShares, remark.orNull))

  /** Adds a sentence to the beginning of the remark. */
  def withRemark(sentence: String): OptimizeMetrics =
    copy(remark = Some((sentence +: remark.toSeq).mkString(" ")))

  private def estimatedShares: Seq[Row] =
    if (estimates.isEmpty) null
    else clusteredBy.zip(estimates).map { case (column, (before, after)) =>
      Row(column, before.lookup, after.lookup, before.range, after.range)
    }

  private def zOrderStats: Row =
    if (clusteredBy.isEmpty) null
    else Row(strategy, files(clustered), files(fresh), 0L, files(removed), partitions, 0L)
}

object OptimizeMetrics {

  /**
   * @param files all considered files
   * @param plan  the rewrite that was done or, in a DRY RUN, would be done
   * @param added the size in bytes of each new file
   */
  private[optimize] def of(
      context: OptimizeContext,
      files: Seq[PartitionFiles],
      plan: RewritePlan,
      added: Seq[Long]): OptimizeMetrics =
    OptimizeMetrics(
      path = context.table.root.toString,
      added = added,
      removed = plan.groups.flatMap(_.files).map(_.getLen),
      clustered = plan.clustered.map(_.getLen),
      fresh = plan.fresh.map(_.getLen),
      partitions = plan.groups.map(_.folder).distinct.length.toLong,
      batches = plan.batches(context.batchSize).length.toLong,
      considered = files.map(_.files.length.toLong).sum,
      strategy = if (context.zOrderBy.isEmpty) "compaction" else context.settings.curve,
      clusteredBy = context.names,
      tableColumns = context.table.schema.length.toLong,
      withStatistics = context.statisticsColumns.length.toLong,
      tasks = plan.groups.map(_.leaves.toLong).sum,
      started = context.started,
      ended = System.currentTimeMillis(),
      dryRun = false,
      estimates = Nil,
      remark = plan.remark)

  private val sizesType: StructType = ResultColumns.none
    .add("min", LongType, "Size of the smallest file in bytes; null if there are none")
    .add("max", LongType, "Size of the largest file in bytes; null if there are none")
    .add("avg", DoubleType, "Average size in bytes")
    .add("totalFiles", LongType, "Number of files")
    .add("totalSize", LongType, "Total size in bytes").schema

  private val filesType: StructType = ResultColumns.none
    .add("num", LongType, "Number of files")
    .add("size", LongType, "Total size in bytes").schema

  private val zOrderType: StructType = ResultColumns.none
    .add("strategyName", StringType, "The curve: zorder, hilbert or linear")
    .add("inputCubeFiles", filesType,
      "Files that were already clustered by these columns, including those that were not rewritten")
    .add("inputOtherFiles", filesType, "Rewritten files that were not clustered by these columns")
    .add("inputNumCubes", LongType, "Always 0; for scripts that read Delta's metrics")
    .add("mergedFiles", filesType, "Files that were rewritten")
    .add("numOutputCubes", LongType, "Number of table partitions with new files")
    .add("mergedNumCubes", LongType, "Always 0; for scripts that read Delta's metrics").schema

  private val sharesType: StructType = ResultColumns.none
    .add("column", StringType, "The clustering column")
    .add("lookupBefore", DoubleType, "Share of the files that a lookup of one value opens now")
    .add("lookupAfter", DoubleType,
      "Share of the files that a lookup of one value would open after the OPTIMIZE")
    .add("rangeBefore", DoubleType,
      "Share of the files that a query for a range with 1% of the rows opens now")
    .add("rangeAfter", DoubleType,
      "Share of the files that a query for such a range would open after the OPTIMIZE").schema

  private val metricsType: StructType = ResultColumns.none
    .add("numFilesAdded", LongType, "Number of new files")
    .add("numFilesRemoved", LongType, "Number of replaced files")
    .add("filesAdded", sizesType, "Sizes of the new files")
    .add("filesRemoved", sizesType, "Sizes of the replaced files")
    .add("partitionsOptimized", LongType,
      "Number of partitions with new files; an unpartitioned table counts as one")
    .add("zOrderStats", zOrderType, "Clustering metrics; null if there are no clustering columns")
    .add("numBins", LongType, "The same as numFilesRemoved")
    .add("numBatches", LongType, "Number of batches, which are published one after the other")
    .add("totalConsideredFiles", LongType, "Number of files that were considered")
    .add("totalFilesSkipped", LongType, "Number of files that were considered but not rewritten")
    .add("preserveInsertionOrder", BooleanType, "Always false")
    .add("startTimeMs", LongType, "Start time in milliseconds since 1970")
    .add("endTimeMs", LongType, "End time in milliseconds since 1970")
    .add("totalScheduledTasks", LongType, "Number of new files to which rows were assigned")
    .add("numTableColumns", LongType, "Number of top-level columns in the table")
    .add("numTableColumnsWithStats", LongType,
      "Number of columns and nested fields with statistics in the index")
    .add("clusteringColumns", ArrayType(StringType),
      "The clustering columns, from ZORDER BY or from the table")
    .add("dryRun", BooleanType,
      "True for a DRY RUN, which writes nothing. The figures are then estimates, and the bytes " +
        "added equal the bytes removed")
    .add("openedShares", ArrayType(sharesType),
      "For a DRY RUN with clustering columns, the shares of files (0 to 1) that queries open")
    .add("remark", StringType,
      "For a DRY RUN, says whether the OPTIMIZE would pay off. Also says why there was nothing " +
        "to do, or that the data is too small for files to be skipped, and warns if clustered " +
        "files are not rewritten although lookups read more than 1.5 times as much data from " +
        "them as they would after OPTIMIZE … FULL")
    .schema

  /** The columns `path` and `metrics`. */
  def output: Seq[Attribute] = ResultColumns.none
    .add("path", StringType, "The table's folder")
    .add("metrics", metricsType,
      "What was done. Fields that also exist in Delta's metrics have the same meaning as in Delta")
    .attributes

  private def files(bytes: Seq[Long]): Row = Row(bytes.length.toLong, bytes.sum)

  private def sizes(bytes: Seq[Long]): Row =
    if (bytes.isEmpty) Row(null, null, 0.0, 0L, 0L)
    else Row(bytes.min, bytes.max, bytes.sum.toDouble / bytes.length, bytes.length.toLong,
      bytes.sum)
}
