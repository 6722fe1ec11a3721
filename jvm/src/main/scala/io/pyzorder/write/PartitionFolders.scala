package io.pyzorder.write

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.NoSuchPartitionException
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, ExternalCatalogUtils}
import org.apache.spark.sql.catalyst.expressions.{Attribute, BindReferences, Cast}
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StringType

/** The locations of a write's partitions according to the catalog. */
private[write] final class PartitionFolders(
    session: shim.SparkSession,
    table: CatalogTable,
    columns: Seq[Attribute]) {

  private val zone = session.sessionState.conf.sessionLocalTimeZone

  private val texts = BindReferences.bindReferences(
    columns.map(column => Cast(column, StringType, Option(zone))), columns)

  /** The location of the partition with these values; None if it is not in the catalog. */
  def of(values: InternalRow): Option[Path] = {
    val spec = columns.zip(texts).map { case (column, text) =>
      val value = Option(text.eval(values)).map(_.toString).filter(_.nonEmpty)
      column.name -> value.getOrElse(ExternalCatalogUtils.DEFAULT_PARTITION_NAME)
    }
    try Some(new Path(
          session.sessionState.catalog.getPartition(table.identifier, spec.toMap).location))
    catch { case _: NoSuchPartitionException => None }
  }
}
