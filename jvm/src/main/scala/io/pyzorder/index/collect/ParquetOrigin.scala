package io.pyzorder.index.collect

import org.apache.parquet.hadoop.metadata.FileMetaData

/**
 * Who wrote a Parquet file, as far as Spark reads its values by it.
 *
 * @param byParquetMr     the footers' bounds are values of the file where the type is not cut
 *                        short, and INT96 is not converted between zones
 * @param datetimeRebase  CORRECTED, LEGACY or EXCEPTION: how dates and INT64 timestamps are read
 * @param datetimeByFile  the file itself says so, whatever the settings are
 * @param int96ByFile     the file itself says that its INT96 timestamps are not rebased
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
   * Spark's rule: a file that names a Spark from 3.0 on (INT96: 3.1), and not the legacy key, keeps
   * the proleptic calendar; one that names an older Spark or the key keeps the hybrid one; of
   * others the setting decides.
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
