package org.apache.spark.sql.pyzorder

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.connector.catalog.{CatalogManager, Table, V1Table}
import org.apache.spark.sql.execution.datasources.{CatalogFileIndex, PartitionPath, PartitionSpec}
import org.apache.spark.sql.types.StructType

/** Gives access to members of the catalog that are private to Spark's packages. */
object CatalogAccess {

  /** The name of the session catalog. */
  val sessionCatalog: String = CatalogManager.SESSION_CATALOG_NAME

  /** The session catalog's description of a table; None if the table is in another catalog. */
  def catalogTable(table: Table): Option[CatalogTable] = table match {
    case V1Table(description) => Some(description)
    case _ => None
  }

  /**
   * A copy of the schema in which all columns are nullable. Spark uses such a copy to read files.
   */
  def asNullable(schema: StructType): StructType = schema.asNullable

  /**
   * A table's current partitions according to the catalog. Their folders are not listed.
   *
   * @param alternatives filters on the partition columns; a partition is included if it passes all
   *                     filters of at least one alternative
   */
  def partitions(
      session: shim.SparkSession,
      index: CatalogFileIndex,
      alternatives: Seq[Seq[Expression]]): PartitionSpec = {
    val zone = session.sessionState.conf.sessionLocalTimeZone
    val conf = session.sessionState.newHadoopConf()
    val catalog = session.sessionState.catalog
    val found = alternatives.flatMap { filters =>
      if (filters.isEmpty) catalog.listPartitions(index.table.identifier)
      else catalog.listPartitionsByFilter(index.table.identifier, filters)
    }.groupBy(_.spec).values.map(_.head).toSeq
    PartitionSpec(
      index.partitionSchema,
      found.map { partition =>
        val path = new Path(partition.location)
        PartitionPath(
          partition.toRow(index.partitionSchema, zone),
          path.getFileSystem(conf).makeQualified(path))
      })
  }
}
