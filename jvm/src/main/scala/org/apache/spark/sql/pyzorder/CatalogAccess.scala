package org.apache.spark.sql.pyzorder

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.connector.catalog.{CatalogManager, Table, V1Table}
import org.apache.spark.sql.execution.datasources.{CatalogFileIndex, DataSourceUtils, FileFormat}
import org.apache.spark.sql.execution.datasources.{PartitionPath, PartitionSpec}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.SchemaUtils

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
   * The schema with which Spark reads the files of an unpartitioned table. All columns are
   * nullable. Throws if Spark would not read a table with these columns, for example because two of
   * their names are the same in this session.
   */
  def readSchema(session: shim.SparkSession, schema: StructType, format: FileFormat): StructType = {
    val conf = session.sessionState.conf
    SchemaUtils.checkSchemaColumnNameDuplication(schema, conf.caseSensitiveAnalysis)
    DataSourceUtils.verifySchema(format, schema)
    schema.asNullable
  }

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
