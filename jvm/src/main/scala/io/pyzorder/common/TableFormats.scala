package io.pyzorder.common

import java.util.Locale

/** The table formats that pyzorder recognizes in statements and catalogs. */
object TableFormats {

  /**
   * Formats that are handled by other extensions. Maps the name of each format to the extension
   * class that spark.sql.extensions must list.
   */
  val foreignExtensions: Map[String, String] = Map(
    "delta" -> "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg" -> "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "hudi" -> "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")

  /** Whether pyzorder handles the format that a statement names, as in ``parquet.`path` ``. */
  def isPlain(format: String): Boolean =
    Set("parquet", "orc").contains(format.toLowerCase(Locale.ROOT))
}
