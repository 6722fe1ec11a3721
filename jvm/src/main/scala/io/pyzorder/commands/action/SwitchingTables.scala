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
 * Support for tables whose files are replaced by switching the location of the table or of its
 * partitions.
 */
private[commands] object SwitchingTables {

  /**
   * Whether the settings request a location switch. Throws ZORDER_CANNOT_SWITCH_LOCATION if they
   * request one but the table does not allow it.
   */
  def asks(session: shim.SparkSession, table: ResolvedTable): Boolean = {
    val conf = session.sessionState.conf
    val asked = ZOrderConf.publishMethod.get(conf, table.properties) == "location"
    if (asked) check(session, table)
    asked
  }

  /** Throws unless the table's location can be switched to a sibling folder. */
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
    checkShared(session, table, Set(table.root))
  }

  private def checkShared(
      session: shim.SparkSession,
      table: ResolvedTable,
      folders: Set[Path]): Unit =
    table.identifier.foreach(own =>
      CoLocatedTables.of(session, own.database.get, Some(own), folders).foreach {
        case (_, other) =>
          throw ZOrderErrors.switchSharedFolder(
            table.name, other.identifier.copy(catalog = None).quotedString)
      })

  /**
   * Throws unless every file is directly in the table's folder. In a partitioned table, every file
   * must instead be directly in the folder of a partition, and no other table may use that folder.
   */
  def checkFlat(session: shim.SparkSession, table: ResolvedTable, files: Seq[FileRef]): Unit =
    if (table.partitionSchema.nonEmpty) {
      val root = new TableFolder(table.root)
      val moved = moves(session, table, files.map(_.folder).distinct)
      checkShared(session, table, moved.map(move => root.resolve(move.from)).toSet)
    } else files.find(_.folder.nonEmpty).foreach(file =>
      throw ZOrderErrors.switchNoPartition(table.name, file.path))

  /**
   * The moves to make for the partitions located in these folders. The folders are given in the
   * same form as FileRef.folder.
   */
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

  /**
   * Copies into the table any files that were written to its previous locations. The caller must
   * hold the lock.
   */
  def carry(session: shim.SparkSession, table: ResolvedTable): Unit = {
    new PreviousLocations(session, table.folder(session), table.identifier).carry()
  }

  /**
   * Runs a command that takes a table's lock. If the table's location has been switched since the
   * table was looked up, for example by the recovery of a dead writer's run, the command is run
   * again on the table at its new location.
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

  /** The table according to its current catalog entry. */
  def current(session: shim.SparkSession, table: ResolvedTable): ResolvedTable = {
    val name = table.identifier.get.copy(catalog = None)
    session.catalog.refreshTable(name.quotedString)
    new TargetLookup(session).ofCatalog(session.sessionState.catalog.getTableMetadata(name))
  }

  /** For each file, its path in the table and its full path. */
  def placesOf(folder: TableFolder, files: Seq[FileRef]): Seq[(String, Path)] =
    files.map(file => file.path -> folder.resolve(file.path))
}
