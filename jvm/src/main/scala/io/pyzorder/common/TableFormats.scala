package io.pyzorder.common

import java.util.Locale

/** Table formats by the names that statements and catalogs give them. */
object TableFormats {

  /** The formats that bring an OPTIMIZE of their own, and what must be in spark.sql.extensions. */
  val foreignExtensions: Map[String, String] = Map(
    "delta" -> "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg" -> "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "hudi" -> "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")

  /** Whether a format named in a statement, as in ``parquet.`path` ``, is one of ours. */
  def isPlain(format: String): Boolean =
    Set("parquet", "orc").contains(format.toLowerCase(Locale.ROOT))
}
