package io.pyzorder.catalog

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.execution.datasources.HadoopFsRelation
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType
import org.slf4j.LoggerFactory

import io.pyzorder.publish.relocate.PartitionLocationSwitch
import io.pyzorder.storage.TableFolder

/**
 * A plain Parquet or ORC table that a statement names, looked up and checked: what the commands
 * work on.
 *
 * @param identifier   with catalog and database; None: the table was named by its path
 * @param root         the table's folder, qualified; partitions may lie elsewhere
 * @param provider     `parquet` or `orc`
 * @param relation     as Spark reads it, with its (perhaps cached) file index, data schema (which
 *                     may hold partition columns too, if the files do), format and options
 * @param properties   the table's properties; empty for a path
 * @param catalogTable as it stands in the catalog; None: named by its path
 */
final case class ResolvedTable(
    identifier: Option[TableIdentifier],
    root: Path,
    provider: String,
    relation: HadoopFsRelation,
    properties: Map[String, String],
    catalogTable: Option[CatalogTable]) {

  /** The table's folder, and where else its partitions lie or lay, by the catalog. */
  def folder(session: shim.SparkSession): TableFolder =
    new TableFolder(root,
      identifier.map(name => () => PartitionLocationSwitch.places(session, name)))

  /** The columns that data files hold. */
  def dataSchema: StructType = relation.dataSchema

  /** The columns whose values folders tell; empty: not partitioned. */
  def partitionSchema: StructType = relation.partitionSchema

  /** Data columns, then partition columns, as SELECT * shows them. */
  def schema: StructType = relation.schema

  /** Options that files are read and written with, such as `compression`. */
  def options: Map[String, String] = relation.options

  /** The data columns that are no partition columns. */
  def fileSchema: StructType = StructType(dataSchema.filterNot(c => isPartitionColumn(c.name)))

  /** True for names of partition columns, in the spelling of the schema. */
  def isPartitionColumn(name: String): Boolean = partitionSchema.fieldNames.contains(name)

  /**
   * Makes Spark forget listings and reread cached data of the table. Where that fails, the table
   * was renamed or dropped meanwhile, which is no failure of what was done to it before.
   */
  def refresh(session: shim.SparkSession): Unit =
    try {
      relation.location.refresh()
      identifier.foreach(name =>
        session.catalog.refreshTable(name.copy(catalog = None).quotedString))
      session.catalog.refreshByPath(root.toString)
    } catch {
      case NonFatal(failure) =>
        ResolvedTable.log.info(s"$name is not there any more: ${failure.getMessage}")
    }

  /** How messages call it: `db`.`table`, or the path. */
  def name: String = identifier match {
    case Some(table) => table.copy(catalog = None).quotedString
    case None => s"'$root'"
  }

  /** How a statement names it: db.table, quoted only where it must be, or the path as a literal. */
  def sql: String = identifier match {
    case Some(table) => (table.database.toSeq :+ table.table).map(quoteIfNeeded).mkString(".")
    case None => Literal(root.toString).sql
  }

  /** The statement that clusters it by columns, as it can be pasted. */
  def optimizeBy(columns: Seq[Seq[String]]): String =
    columns.map(_.map(quoteIfNeeded).mkString("."))
      .mkString(s"OPTIMIZE $sql ZORDER BY (", ", ", ")")
}

object ResolvedTable {
  private val log = LoggerFactory.getLogger(classOf[ResolvedTable])
}
