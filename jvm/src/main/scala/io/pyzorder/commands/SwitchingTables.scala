package io.pyzorder.commands

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTableType
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.{ZOrderConf, ZOrderErrors, ZOrderException}
import io.pyzorder.publish.{FileRef, TableFolder}

/** Tables that are published by a switch of their location: which can be, and where they lie. */
private[commands] object SwitchingTables {

  /** Whether the table asks for it. Throws cannotSwitch where it asks and cannot be. */
  def asks(session: shim.SparkSession, table: ResolvedTable): Boolean = {
    val conf = session.sessionState.conf
    val asked = ZOrderConf.publishMethod.get(conf, table.properties) == "location"
    if (asked) check(session, table)
    asked
  }

  /** Throws cannotSwitch unless the table's location can be switched to a folder beside it. */
  def check(session: shim.SparkSession, table: ResolvedTable): Unit = {
    val conf = session.sessionState.conf
    def cannot(why: String) = throw ZOrderErrors.cannotSwitch(table.name, why)
    val entry = table.catalogTable.getOrElse(cannot("it is named by its path, not by its table"))
    if (entry.tableType != CatalogTableType.EXTERNAL) {
      cannot("it is a managed table, whose other folders DROP TABLE would leave behind")
    }
    if (entry.partitionColumnNames.nonEmpty) {
      cannot("it is partitioned, and catalogs keep a location for each partition")
    }
    if (ZOrderConf.readersByPath.get(conf, table.properties)) {
      cannot(s"${ZOrderConf.readersByPath.property} says that others read its folder by the path")
    }
    if (table.root.getParent == null || table.root.getName.contains("=")) {
      cannot(s"a folder beside ${table.root} would be another table's")
    }
    sharers(session, entry.identifier, table.root).foreach(other =>
      cannot(s"table $other lies in the same folder"))
  }

  /** An error unless all files lie in the table's folder itself. */
  def checkFlat(table: ResolvedTable, files: Seq[FileRef]): Unit =
    files.find(_.folder.nonEmpty).foreach(file => throw ZOrderErrors.cannotSwitch(
      table.name, s"its file ${file.path} lies in a folder of its own"))

  /** Tables of the same database that lie in the same folder. */
  private def sharers(
      session: shim.SparkSession,
      own: TableIdentifier,
      root: Path): Seq[String] = {
    val catalog = session.sessionState.catalog.externalCatalog
    val conf = session.sessionState.newHadoopConf()
    val database = own.database.get
    catalog.getTablesByName(database, catalog.listTables(database))
      .filter(other => other.identifier.table != own.table &&
        other.storage.locationUri.exists { uri =>
          val path = new Path(uri)
          path.getName == root.getName && path.getFileSystem(conf).makeQualified(path) == root
        })
      .map(_.identifier.unquotedString)
  }

  /**
   * Runs a command that takes a table's lock. Where its location was switched since it was looked
   * up, by this command's own recovery of a dead one perhaps, it runs on the table as it is now.
   */
  def following[T](session: shim.SparkSession, table: ResolvedTable)(
      command: ResolvedTable => T): T =
    try command(table)
    catch {
      case moved: ZOrderException if moved.condition == "ZORDER_TABLE_MOVED" =>
        if (table.identifier.isEmpty) throw moved
        val now = current(session, table)
        if (now.root == table.root) throw moved
        following(session, now)(command)
    }

  /** A catalog's table as the catalog has it now. */
  def current(session: shim.SparkSession, table: ResolvedTable): ResolvedTable = {
    val name = table.identifier.get.copy(catalog = None)
    session.catalog.refreshTable(name.quotedString)
    new TargetLookup(session).ofCatalog(session.sessionState.catalog.getTableMetadata(name))
  }

  /** Where files lie, with the names that they have in the table. */
  def placesOf(folder: TableFolder, files: Seq[FileRef]): Seq[(String, Path)] =
    files.map(file => file.path -> folder.resolve(file.path))
}
