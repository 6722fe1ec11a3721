package io.pyzorder.index.collect

import org.apache.parquet.hadoop.metadata.FileMetaData

/**
 * The properties of a Parquet file's writer that affect how Spark reads the values.
 *
 * @param byParquetMr    whether the writer is parquet-mr. If so, INT96 values are not converted
 *                       between time zones, and the bounds in the footer are actual values from the
 *                       file, except for types whose bounds may be truncated
 * @param datetimeByFile whether the file itself records that its dates and INT64 timestamps are not
 *                       rebased. If so, settings do not matter
 * @param int96ByFile    whether the file itself records that its INT96 timestamps are not rebased
 */
private[index] final case class ParquetOrigin(
    byParquetMr: Boolean,
    datetimeByFile: Boolean,
    int96ByFile: Boolean)

private[index] object ParquetOrigin {

  private val SparkVersion = "org.apache.spark.version"
  private val LegacyDatetime = "org.apache.spark.legacyDateTime"
  private val LegacyInt96 = "org.apache.spark.legacyINT96"

  /**
   * Applies Spark's rule. If the metadata does not name a Spark version, the reader's rebase mode
   * decides. Otherwise, the file uses the proleptic calendar if the version is at least 3.0 (3.1
   * for INT96) and the metadata lacks the legacy key (`LegacyDatetime` or `LegacyInt96`). In all
   * other cases, the file uses the hybrid calendar.
   */
  def of(metadata: FileMetaData): ParquetOrigin = {
    val keys = metadata.getKeyValueMetaData
    def corrected(since: String, legacyKey: String): Boolean =
      Option(keys.get(SparkVersion)).exists(_ >= since) && keys.get(legacyKey) == null
    ParquetOrigin(
      byParquetMr =
        metadata.getCreatedBy != null && metadata.getCreatedBy.startsWith("parquet-mr"),
      datetimeByFile = corrected("3.0.0", LegacyDatetime),
      int96ByFile = corrected("3.1.0", LegacyInt96))
  }
}
