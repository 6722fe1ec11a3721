package io.pyzorder.index.collect

import org.apache.parquet.hadoop.metadata.FileMetaData

/**
 * The properties of a Parquet file's writer that affect how Spark reads the values.
 *
 * @param byParquetMr    whether the writer is parquet-mr. If so, the footer's bounds are values of
 *                       the file unless the type allows truncation, and INT96 is not converted
 *                       between zones
 * @param datetimeRebase how dates and INT64 timestamps are read: CORRECTED, LEGACY or EXCEPTION
 * @param datetimeByFile whether the file itself says CORRECTED, so that settings do not matter
 * @param int96ByFile    whether the file itself records that its INT96 timestamps are not rebased
 */
private[index] final case class ParquetOrigin(
    byParquetMr: Boolean,
    datetimeRebase: String,
    datetimeByFile: Boolean,
    int96ByFile: Boolean)

private[index] object ParquetOrigin {

  private val SparkVersion = "org.apache.spark.version"
  private val LegacyDatetime = "org.apache.spark.legacyDateTime"
  private val LegacyInt96 = "org.apache.spark.legacyINT96"

  /**
   * Applies Spark's rule. A file that names Spark 3.0 or later (3.1 for INT96) without the legacy
   * key uses the proleptic calendar. A file that names an older Spark, or a newer one with the key,
   * uses the hybrid calendar. For a file that names no Spark version, the setting decides.
   */
  def of(metadata: FileMetaData, modeBySetting: String): ParquetOrigin = {
    val keys = metadata.getKeyValueMetaData
    val version = Option(keys.get(SparkVersion))
    def corrected(since: String, legacyKey: String): Boolean =
      version.exists(_ >= since) && keys.get(legacyKey) == null
    val datetimeCorrected = corrected("3.0.0", LegacyDatetime)
    ParquetOrigin(
      byParquetMr =
        metadata.getCreatedBy != null && metadata.getCreatedBy.startsWith("parquet-mr"),
      datetimeRebase =
        if (datetimeCorrected) "CORRECTED" else if (version.isDefined) "LEGACY" else modeBySetting,
      datetimeByFile = datetimeCorrected,
      int96ByFile = corrected("3.1.0", LegacyInt96))
  }
}
