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

  /** Whether the table asks for it. Throws ZORDER_CANNOT_SWITCH_LOCATION where it cannot be. */
  def asks(session: shim.SparkSession, table: ResolvedTable): Boolean = {
    val conf = session.sessionState.conf
    val asked = ZOrderConf.publishMethod.get(conf, table.properties) == "location"
    if (asked) check(session, table)
    asked
  }

  /** An error unless the table's location can be switched to a folder beside it. */
  def check(session: shim.SparkSession, table: ResolvedTable): Unit = {
    val conf = session.sessionState.conf
    val entry = table.catalogTable.getOrElse(throw ZOrderErrors.switchByPath(table.name))
    if (entry.tableType != CatalogTableType.EXTERNAL) {
      throw ZOrderErrors.switchManaged(table.name)
    }
    if (entry.partitionColumnNames.nonEmpty && !entry.tracksPartitionsInCatalog) {
      throw ZOrderErrors.switchPartitionsUnknown(table.name)
    }
    if (ZOrderConf.readersByPath.get(conf, table.properties)) {
      throw ZOrderErrors.switchReadersByPath(table.name)
    }
    if (table.root.getParent == null || table.root.getName.contains("=")) {
      throw ZOrderErrors.switchNoSibling(table.name, table.root.toString)
    }
    CoLocatedTables.of(
      session, entry.identifier.database.get, Some(entry.identifier), Set(table.root))
      .foreach { case (_, other) =>
        throw ZOrderErrors.switchSharedFolder(table.name, other.identifier.unquotedString)
      }
  }

  /** An error unless all files lie in the table's folder itself, or in those of its partitions. */
  def checkFlat(session: shim.SparkSession, table: ResolvedTable, files: Seq[FileRef]): Unit =
    if (table.partitionSchema.nonEmpty) moves(session, table, files.map(_.folder).distinct)
    else files.find(_.folder.nonEmpty).foreach(file =>
      throw ZOrderErrors.switchNoPartition(table.name, file.path))

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
        case Some(_) =>
          throw ZOrderErrors.switchSharedPartitions(table.name, root.resolve(folder).toString)
        case None => throw ZOrderErrors.switchNoPartition(table.name, folder)
      }
    }
  }

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
