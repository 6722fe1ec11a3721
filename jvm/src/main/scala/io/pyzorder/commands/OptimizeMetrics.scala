package io.pyzorder.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.types._

/**
 * What an OPTIMIZE did, or would do: the row it returns, in Delta's shape.
 *
 * @param path         the table's folder
 * @param added        bytes of each new file
 * @param removed      bytes of each file that was replaced
 * @param partitions   number of table partitions with new files
 * @param considered   number of files that were looked at
 * @param strategy     `zorder`, `hilbert`, `linear` or `compaction`
 * @param clusteredBy  names of the clustering columns
 * @param tableColumns number of the table's columns
 * @param withStatistics number of columns that new files have statistics of
 * @param tasks        number of files the rows were laid out to
 * @param started      milliseconds since the epoch
 * @param ended        milliseconds since the epoch
 */
final case class OptimizeMetrics(
    path: String,
    added: Seq[Long],
    removed: Seq[Long],
    partitions: Long,
    considered: Long,
    strategy: String,
    clusteredBy: Seq[String],
    tableColumns: Long,
    withStatistics: Long,
    tasks: Long,
    started: Long,
    ended: Long,
    dryRun: Boolean) {
  import OptimizeMetrics._

  /** The one row, of the columns `output`. */
  def toRow: Row = Row(path,
    Row(
      added.length.toLong, removed.length.toLong, sizes(added), sizes(removed), partitions,
      zOrderStats, removed.length.toLong, 1L, considered, considered - removed.length, false,
      started, ended, tasks, tableColumns, withStatistics, clusteredBy, dryRun))

  private def zOrderStats: Row =
    if (clusteredBy.isEmpty) null
    else Row(strategy, Row(0L, 0L), Row(removed.length.toLong, removed.sum), 0L,
      Row(removed.length.toLong, removed.sum), partitions, 0L)
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

  /** `path` and `metrics`. */
  def output: Seq[Attribute] = Seq(
    AttributeReference("path", StringType)(), AttributeReference("metrics", metricsType)())

  private def sizes(bytes: Seq[Long]): Row =
    if (bytes.isEmpty) Row(null, null, 0.0, 0L, 0L)
    else Row(bytes.min, bytes.max, bytes.sum.toDouble / bytes.length, bytes.length.toLong,
      bytes.sum)
}
