package io.pyzorder.commands.action

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.{CatalogTableType, ExternalCatalogUtils}
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.{ResolvedTable, TargetLookup}
import io.pyzorder.common.{ZOrderConf, ZOrderErrors, ZOrderException}
import io.pyzorder.publish.journal.PartitionMove
import io.pyzorder.publish.relocate.{CoLocatedTables, PartitionLocationSwitch, PreviousLocations}
import io.pyzorder.storage.{FileRef, TableFolder}

/**
 * Tables that are published by a switch of their location, or of their partitions': which can be,
 * and where they lie.
 */
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
    if (entry.partitionColumnNames.nonEmpty && !entry.tracksPartitionsInCatalog) {
      cannot("its partitions are not in the catalog: run MSCK REPAIR TABLE")
    }
    if (ZOrderConf.readersByPath.get(conf, table.properties)) {
      cannot(s"${ZOrderConf.readersByPath.property} says that others read its folder by the path")
    }
    if (table.root.getParent == null || table.root.getName.contains("=")) {
      cannot(s"a folder beside ${table.root} would be another table's")
    }
    CoLocatedTables.of(
      session, entry.identifier.database.get, Some(entry.identifier), Set(table.root))
      .foreach { case (_, other) =>
        cannot(s"table ${other.identifier.unquotedString} lies in the same folder")
      }
  }

  /** An error unless all files lie in the table's folder itself, or in those of its partitions. */
  def checkFlat(session: shim.SparkSession, table: ResolvedTable, files: Seq[FileRef]): Unit =
    if (table.partitionSchema.nonEmpty) moves(session, table, files.map(_.folder).distinct)
    else files.find(_.folder.nonEmpty).foreach(file => throw astray(table, file.path))

  /** The partitions that lie in these folders, named as in FileRef.folder, as they are switched. */
  def moves(
      session: shim.SparkSession,
      table: ResolvedTable,
      folders: Seq[String]): Seq[PartitionMove] = {
    val root = new TableFolder(table.root)
    val columns = table.catalogTable.get.partitionColumnNames
    val known = PartitionLocationSwitch.partitionsOf(session, table.identifier.get).toSeq
      .groupBy { case (_, place) => root.relativize(place) }
    folders.map { folder =>
      known.get(folder).map(_.map(_._1.spec)) match {
        case Some(Seq(spec)) =>
          val values = CaseInsensitiveMap(spec)
          val path = columns.map(c => ExternalCatalogUtils.getPartitionPathString(c, values(c)))
          PartitionMove(spec, folder, path.mkString("/"))
        case Some(_) => throw ZOrderErrors.cannotSwitch(
            table.name, s"more than one of its partitions lie in ${root.resolve(folder)}")
        case None => throw astray(table, folder)
      }
    }
  }

  private def astray(table: ResolvedTable, path: String): Exception =
    ZOrderErrors.cannotSwitch(table.name, s"its file $path lies in a folder of its own")

  /** For the holder of the lock: brings over what was written where the table lay before. */
  def carry(session: shim.SparkSession, table: ResolvedTable): Unit = {
    new PreviousLocations(session, table.folder(session), table.identifier).carry()
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
