package io.pyzorder.common

import java.util.Locale

/** The table formats that pyzorder knows, by their names in statements and catalogs. */
object TableFormats {

  /**
   * The formats whose statements are left to their own extensions, mapped to the extension class
   * that spark.sql.extensions must list.
   */
  val foreignExtensions: Map[String, String] = Map(
    "delta" -> "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg" -> "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "hudi" -> "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")

  /** Whether pyzorder handles the format that a statement names, as in ``parquet.`path` ``. */
  def isPlain(format: String): Boolean =
    Set("parquet", "orc").contains(format.toLowerCase(Locale.ROOT))
}
