package io.pyzorder.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.types._

import io.pyzorder.layout.OpenedShare

/**
 * What an OPTIMIZE did, or would do: the row it returns, in Delta's shape.
 *
 * @param path         the table's folder
 * @param added        bytes of each new file
 * @param removed      bytes of each file that was replaced
 * @param clustered    bytes of each file looked at that an earlier run clustered as wanted
 * @param fresh        bytes of each file replaced that none had
 * @param partitions   number of table partitions with new files
 * @param batches      number of parts that were published one after the other
 * @param considered   number of files that were looked at
 * @param strategy     `zorder`, `hilbert`, `linear` or `compaction`
 * @param clusteredBy  names of the clustering columns
 * @param tableColumns number of the table's columns
 * @param withStatistics number of columns that new files have statistics of
 * @param tasks        number of files the rows were laid out to
 * @param started      milliseconds since the epoch
 * @param ended        milliseconds since the epoch
 * @param estimates    for each clustering column the shares of files that queries open, before and
 *                     after; empty: not estimated
 * @param remark       a sentence on files that were left although they are not narrow
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

  /** The one row, of the columns `output`. */
  def toRow: Row = Row(path,
    Row(
      added.length.toLong, removed.length.toLong, sizes(added), sizes(removed), partitions,
      zOrderStats, removed.length.toLong, batches, considered, considered - removed.length, false,
      started, ended, tasks, tableColumns, withStatistics, clusteredBy, dryRun,
      estimatedShares, remark.orNull))

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

  private val sizesType: StructType = new StructType()
    .add("min", LongType).add("max", LongType).add("avg", DoubleType)
    .add("totalFiles", LongType).add("totalSize", LongType)

  private val filesType: StructType = new StructType().add("num", LongType).add("size", LongType)

  private val zOrderType: StructType = new StructType()
    .add("strategyName", StringType)
    .add("inputCubeFiles", filesType).add("inputOtherFiles", filesType)
    .add("inputNumCubes", LongType).add("mergedFiles", filesType)
    .add("numOutputCubes", LongType).add("mergedNumCubes", LongType)

  /** Of a lookup of one value, and of a range that holds 1 % of the rows; see OpenedShare. */
  private val sharesType: StructType = new StructType()
    .add("column", StringType)
    .add("lookupBefore", DoubleType).add("lookupAfter", DoubleType)
    .add("rangeBefore", DoubleType).add("rangeAfter", DoubleType)

  private val metricsType: StructType = new StructType()
    .add("numFilesAdded", LongType).add("numFilesRemoved", LongType)
    .add("filesAdded", sizesType).add("filesRemoved", sizesType)
    .add("partitionsOptimized", LongType)
    .add("zOrderStats", zOrderType)
    .add("numBins", LongType).add("numBatches", LongType)
    .add("totalConsideredFiles", LongType).add("totalFilesSkipped", LongType)
    .add("preserveInsertionOrder", BooleanType)
    .add("startTimeMs", LongType).add("endTimeMs", LongType)
    .add("totalScheduledTasks", LongType)
    .add("numTableColumns", LongType).add("numTableColumnsWithStats", LongType)
    .add("clusteringColumns", ArrayType(StringType))
    .add("dryRun", BooleanType)
    .add("openedShares", ArrayType(sharesType))
    .add("remark", StringType)

  /** `path` and `metrics`. */
  def output: Seq[Attribute] = Seq(
    AttributeReference("path", StringType)(), AttributeReference("metrics", metricsType)())

  private def files(bytes: Seq[Long]): Row = Row(bytes.length.toLong, bytes.sum)

  private def sizes(bytes: Seq[Long]): Row =
    if (bytes.isEmpty) Row(null, null, 0.0, 0L, 0L)
    else Row(bytes.min, bytes.max, bytes.sum.toDouble / bytes.length, bytes.length.toLong,
      bytes.sum)
}
