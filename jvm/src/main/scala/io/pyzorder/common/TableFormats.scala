package io.pyzorder.common

import java.util.Locale

/** Table formats, by their names in statements and catalogs. */
object TableFormats {

  /**
   * The formats whose statements pyzorder leaves to the formats' own extensions. Each is mapped to
   * the class that spark.sql.extensions must list.
   */
  val foreignExtensions: Map[String, String] = Map(
    "delta" -> "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg" -> "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "hudi" -> "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")

  /** Whether pyzorder handles the format that a statement names, as in ``parquet.`path` ``. */
  def isPlain(format: String): Boolean =
    Set("parquet", "orc").contains(format.toLowerCase(Locale.ROOT))
}
