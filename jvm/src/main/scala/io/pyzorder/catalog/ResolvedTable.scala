package io.pyzorder.catalog

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, InMemoryFileIndex}
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType
import org.slf4j.LoggerFactory

import io.pyzorder.common.ZOrderConf
import io.pyzorder.index.model.IndexedColumn
import io.pyzorder.publish.relocate.PartitionLocationSwitch
import io.pyzorder.storage.TableFolder

/**
 * A plain Parquet or ORC table that has been looked up and validated.
 *
 * @param identifier   the name, including catalog and database; None if the table was named by its
 *                     path
 * @param root         the qualified path of the table's folder; partitions may be located outside
 *                     it
 * @param provider     `parquet` or `orc`
 * @param relation     the relation that Spark reads. Its file index may be cached. Its data schema
 *                     includes the partition columns if the files contain them
 * @param properties   the table's properties; empty if the table was named by its path
 * @param catalogTable the catalog entry; None if the table was named by its path
 */
final case class ResolvedTable(
    identifier: Option[TableIdentifier],
    root: Path,
    provider: String,
    relation: HadoopFsRelation,
    properties: Map[String, String],
    catalogTable: Option[CatalogTable]) {

  /**
   * The table's folder, including the current and former locations of its partitions; see
   * PartitionLocationSwitch.places.
   */
  def folder(session: shim.SparkSession): TableFolder =
    new TableFolder(root,
      identifier.map(name => () => PartitionLocationSwitch.places(session, name, root)))

  /** The columns in the data files. */
  def dataSchema: StructType = relation.dataSchema

  /** The columns whose values come from folder names; empty if the table is not partitioned. */
  def partitionSchema: StructType = relation.partitionSchema

  /** Data columns followed by partition columns, in the order of SELECT *. */
  def schema: StructType = relation.schema

  /** The options for reading and writing files, such as `compression`. */
  def options: Map[String, String] = relation.options

  /** The data columns that are not partition columns. */
  def fileSchema: StructType = StructType(dataSchema.filterNot(c => isPartitionColumn(c.name)))

  /** Whether `name`, spelled as in the schema, is the name of a partition column. */
  def isPartitionColumn(name: String): Boolean = partitionSchema.fieldNames.contains(name)

  /**
   * Makes Spark drop its cached listings of the table and reload its cached data. A failure, which
   * usually means that the table was renamed or dropped in the meantime, is only logged, because
   * the calling command has already done its work.
   */
  def refresh(session: shim.SparkSession): Unit =
    try {
      // An InMemoryFileIndex would list the table. If queries use it again, pyzorder notices that
      // the journal or the index has changed (see JournaledListing.current).
      if (!relation.location.isInstanceOf[InMemoryFileIndex] ||
        !ZOrderConf.journalOverlay.get(session.sessionState.conf)) relation.location.refresh()
      identifier.foreach(name =>
        session.catalog.refreshTable(name.copy(catalog = None).quotedString))
      session.catalog.refreshByPath(root.toString)
    } catch {
      case NonFatal(failure) =>
        ResolvedTable.log.info(
          s"Spark's caches of $name were not refreshed, probably because the table was renamed " +
            s"or dropped: ${failure.getMessage}")
    }

  /** The name to show in messages: `db`.`table` or the path. */
  def name: String = identifier match {
    case Some(table) => table.copy(catalog = None).quotedString
    case None => s"'$root'"
  }

  /** The name to use in SQL: db.table, quoted only if necessary, or the path as a literal. */
  def sql: String = identifier match {
    case Some(table) => (table.database.toSeq :+ table.table).map(quoteIfNeeded).mkString(".")
    case None => Literal(root.toString).sql
  }

  /** An OPTIMIZE statement that clusters the table by `columns`, or only merges files if Nil. */
  def optimizeBy(columns: Seq[IndexedColumn], full: Boolean = false): String =
    if (columns.isEmpty) s"OPTIMIZE $sql"
    else s"OPTIMIZE $sql ${if (full) "FULL " else ""}${ResolvedTable.zOrderBy(columns)}"
}

object ResolvedTable {

  /** A ZORDER BY clause with these columns. */
  def zOrderBy(columns: Seq[IndexedColumn]): String =
    columns.map(inSql).mkString("ZORDER BY (", ", ", ")")

  /** A column as written in a ZORDER BY clause, quoted only if necessary. */
  def inSql(column: IndexedColumn): String =
    ClusteringColumns.named(column).fold(identity, _.map(quoteIfNeeded).mkString("."))

  private val log = LoggerFactory.getLogger(classOf[ResolvedTable])
}
