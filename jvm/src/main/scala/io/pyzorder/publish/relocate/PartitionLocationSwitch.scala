package io.pyzorder.publish.relocate

import java.io.IOException

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.pyzorder.{shim, Requests}

import io.pyzorder.common.{ZOrderErrors, ZOrderException}
import io.pyzorder.publish.journal.{FillingMark, PartitionMove, PartitionsRecord, Records}
import io.pyzorder.publish.journal.{RetireRecord, RunFiles}
import io.pyzorder.storage.{FileRef, FileSystems, MetadataFiles, SiblingFolder, TableFolder}

/**
 * A run that publishes its files by changing the locations of partitions. For each partition that
 * it rewrites, it fills a folder such as `sales-zorder-3f2a9c1d/day=1` beside the table's folder
 * `sales`. A single catalog call then gives these partitions their new locations. No file in a
 * partition's old folder is touched. For each partition, a reader sees either all of the old folder
 * or all of the new one, for the reasons given in TableLocationSwitch.
 *
 * The journal, the lock and the index remain in the table's folder. The journal and the index refer
 * to files outside that folder by their fully qualified paths. The index entries of a partition's
 * old and new files can therefore coexist, and each entry is compared only with its own file.
 *
 * @param table  the table's folder, whose journal contains the run
 * @param run    the run's number
 * @param record the run's record in that journal
 */
final class PartitionLocationSwitch private[publish] (
    session: shim.SparkSession,
    val table: TableFolder,
    val run: Long,
    val record: PartitionsRecord)
    extends CatalogSwitch {
  import PartitionLocationSwitch.partitionsOf

  private val hadoopConf = session.sessionState.newHadoopConf()
  private val fs = table.root.getFileSystem(hadoopConf)

  override val filled: TableFolder = SiblingFolder.of(table, record.to)

  /** The move of one partition to another folder. */
  final class Move(val what: PartitionMove) {

    lazy val from: Path = table.resolve(what.from)

    val to: Path = filled.resolve(what.to)

    /** The files that the run read from the partition's folder. */
    val read: Seq[FileRef] = record.read.filter(_.folder == what.from)

    /** The partition's previous folder, `from`. */
    lazy val left: PreviousLocation = new PreviousLocation(
      session, table, from, read,
      new Path(table.zorder, s"_carried/_$run/${what.to.split('/').map("_" + _).mkString("/")}"),
      record.to.takeRight(8))

    /**
     * A description of how others have changed the files that were read; None if they are
     * unchanged.
     */
    def changed: Option[String] =
      try {
        new RunFiles(hadoopConf, table, run, RetireRecord(record.incarnation, read, Nil, Nil))
          .checkInputs()
        None
      } catch {
        case conflict: ZOrderException => Option(conflict.getMessageParameters.get("what"))
            .orElse(Some(conflict.sentence))
      }

    def visible: Seq[FileStatus] = SiblingFolder.dataFiles(hadoopConf, to)

    /** Whether `to` contains this record's mark, which is removed once the catalog names `to`. */
    def isMine: Boolean = FillingMark.isIn(hadoopConf, to, table, Records.write(record))

    override def toString: String = s"partition ${what.to} of $tableName"
  }

  val moves: Seq[Move] = record.moves.map(new Move(_))

  /**
   * The moves from folders that the catalog attributes to the table. Anyone with write access to
   * the table's folder can forge the record and the table name in it. If the filled folder has
   * become the table's folder, for example through an earlier switch, they can also forge the mark.
   */
  private def own: Seq[Move] = moves.filter(move => table.holds(move.what.from))

  /**
   * Whether the run creates a LeftMark in the partition's old folder. It does so only if the folder
   * is outside the table's folder and its path contains no link that someone with write access to
   * the table could have created.
   */
  private def isMarked(move: Move): Boolean =
    TableFolder.isWhole(move.what.from) && table.holds(move.what.from)

  override def strange: Option[String] = moves.map(_.what.from).find(!table.holds(_))

  override def check(): Unit = {
    val now = locations
    moves.foreach { move =>
      if (!now.get(move.what.spec).contains(move.from)) {
        throw ZOrderErrors.conflict(now.get(move.what.spec).fold(s"$move was dropped")(place =>
            s"the location of $move was changed to $place"))
      }
    }
    new RunFiles(hadoopConf, table, run, RetireRecord(record.incarnation, Nil, Nil, Nil))
      .checkFolders()
    moves.flatMap(_.changed).headOption.foreach(what => throw ZOrderErrors.conflict(what))
  }

  /** Creates the folders with the permissions of the old folders. */
  override def make(): Unit = {
    def folder(path: Path, like: Path): Unit = {
      if (!fs.mkdirs(path)) throw new IOException(s"cannot create $path")
      MetadataFiles.share(hadoopConf, path, like)
    }
    folder(filled.root, table.root)
    moves.foreach { move =>
      move.what.to.split('/').init.scanLeft(filled.root)(new Path(_, _)).tail
        .foreach(folder(_, table.root))
      folder(move.to, move.from)
      if (isMarked(move)) LeftMark.put(hadoopConf, move.from, table, run)
      FillingMark.put(hadoopConf, move.to, table, Records.write(record))
    }
  }

  override def marked: Set[Path] = own.filter(_.isMine).map(_.to).toSet

  override def carry(): Unit = moves.foreach(move => move.left.carry(move.to, table))

  override def undo(): Unit = remove(own)

  /**
   * Skips folders without the mark. If a folder has no mark, either its switch is finished or the
   * record is forged.
   */
  override def complete(alive: () => Boolean, reach: String => Unit): Seq[String] = {
    val mine = own.filter(_.isMine)
    val problems = if (mine.isEmpty) Nil else complete(mine, alive, reach)
    mine.foreach(move => FillingMark.remove(hadoopConf, move.to))
    problems
  }

  private def complete(
      moves: Seq[Move],
      alive: () => Boolean,
      reach: String => Unit): Seq[String] = {
    val now = locations
    val (open, settled) = moves.partition(move => now.get(move.what.spec).contains(move.from))
    val told = settled.flatMap { move =>
      now.get(move.what.spec) match {
        case Some(place) if place == move.to => settle(move)
        case Some(place) => Some(s"the location of $move was changed to $place")
        case None => Some(s"$move or its table was dropped")
      }
    }
    val conflicts = open.flatMap(move => move.changed.map(move -> _))
    remove(conflicts.map(_._1))
    val ready = open.filterNot(move => conflicts.exists(_._1 eq move))
    told ++ conflicts.map(_._2) ++ (if (ready.isEmpty) Nil else switch(ready, alive, reach))
  }

  private def switch(
      ready: Seq[Move],
      alive: () => Boolean,
      reach: String => Unit): Seq[String] = {
    ready.foreach(move => move.left.carry(move.to, table))
    if (!alive()) throw ZOrderErrors.conflict(
      "this process sent no heartbeat for longer than its lease")
    reach("before-switch")
    val whole = ready.map(move => move -> move.visible.toSet)
    alter(ready.map(move => move -> move.to))
    reach("after-switch")
    val conflicts = ready.flatMap(move => move.changed.map(move -> _))
    // Switch back partitions that were overwritten during the switch, unless the files in their new
    // folders have changed since the switch.
    val back = conflicts.map(_._1).filter(move => whole.contains(move -> move.visible.toSet))
    if (back.nonEmpty) {
      alter(back.map(move => move -> move.from))
      remove(back)
    }
    ready.filterNot(move => conflicts.exists(_._1 eq move))
      .foreach(move => move.left.carry(move.to, table))
    conflicts.map(_._2)
  }

  /** Finishes the switch of a partition whose location has already been changed. */
  private def settle(move: Move): Option[String] = {
    val conflict = move.changed
    if (conflict.isEmpty) move.left.carry(move.to, table)
    conflict
  }

  /**
   * Deletes filled folders that the catalog does not name, and parent folders that become empty.
   */
  private def remove(moves: Seq[Move]): Unit = {
    val mine = moves.filter(_.isMine)
    val named =
      if (mine.isEmpty) Set.empty[Path] else partitionsOf(session, record.table).values.toSet
    mine.filterNot(move => named(move.to)).foreach { move =>
      fs.delete(move.to, true)
      if (isMarked(move)) {
        LeftMark.remove(hadoopConf, move.from, run)
        removeEmpty(new Path(move.from, TableFolder.Name))
      }
      Iterator.iterate(move.to.getParent)(_.getParent)
        .takeWhile(TableFolder.isAtOrBelow(_, filled.root)).foreach(removeEmpty)
    }
  }

  private def removeEmpty(folder: Path): Unit =
    try fs.delete(folder, false)
    catch { case _: IOException => () } // not empty

  private def tableName: String = record.table.copy(catalog = None).quotedString

  /**
   * The partitions' locations according to the catalog. Empty if the table that the record names
   * does not exist or has another location. If the location differs, the record does not belong to
   * the table that it names, even if one of that table's partitions is in this folder.
   */
  private def locations: Map[TablePartitionSpec, Path] =
    if (!TableLocationSwitch.location(session, record.table).contains(table.root)) Map.empty
    else partitionsOf(session, record.table).map { case (partition, place) =>
      partition.spec -> place
    }

  /**
   * The partition's parameters after its location is changed to `place`. If the partition is
   * switched away from a location outside the table's folder, a parameter records that location.
   * Recorded locations that no longer exist are dropped.
   */
  private def parameters(
      partition: CatalogTablePartition,
      move: Move,
      place: Path): Map[String, String] = {
    val noted =
      if (place == move.to && isMarked(move)) {
        Seq(s"${PartitionLocationSwitch.Left}$run" -> move.what.from)
      } else Nil
    partition.parameters.filterNot { case (key, left) =>
      key.startsWith(PartitionLocationSwitch.Left) && !FileSystems.exists(fs, new Path(left))
    } ++ noted
  }

  private def alter(places: Seq[(Move, Path)]): Unit = {
    val bySpec = places.map { case (move, place) => move.what.spec -> (move -> place) }.toMap
    val catalog = session.sessionState.catalog
    val altered = partitionsOf(session, record.table).keys.toSeq.flatMap { partition =>
      bySpec.get(partition.spec).map { case (move, place) =>
        partition.copy(
          storage = partition.storage.copy(locationUri = Some(place.toUri)),
          parameters = parameters(partition, move, place))
      }
    }
    catalog.externalCatalog.alterPartitions(
      record.table.database.get, record.table.table, altered)
    catalog.refreshTable(record.table.copy(catalog = None))
  }
}

object PartitionLocationSwitch {

  /**
   * In the catalog, a partition's parameters record its previous locations outside the table's
   * folder. Each of these parameters records one location. Its name is this prefix, followed by the
   * number of the run that switched the partition away from the location. The table's journal also
   * records these locations, but the journal is not trusted, because someone with write access to
   * the journal may have no access to the locations.
   */
  private val Left = "zorder.left."

  private def isPartitioned(session: shim.SparkSession, table: TableIdentifier): Boolean = {
    val catalog = session.sessionState.catalog.externalCatalog
    val database = table.database.get
    catalog.databaseExists(database) && catalog.tableExists(database, table.table) &&
    catalog.getTable(database, table.table).partitionColumnNames.nonEmpty
  }

  /**
   * The current locations of a table's partitions according to the catalog, and those previous
   * locations that still contain the LeftMark of the run that replaced them. A previous location
   * without the mark may belong to another user.
   */
  def places(session: shim.SparkSession, table: TableIdentifier, root: Path): Set[Path] =
    if (!isPartitioned(session, table)) Set.empty
    else {
      val conf = session.sessionState.newHadoopConf()
      val partitions = partitionsOf(session, table)
      val marked = Requests.inParallel(root.getFileSystem(conf), left(session, partitions)) {
        case (run, place) => Some(place).filter(LeftMark.isIn(conf, _, root, run))
      }
      partitions.values.toSet ++ marked.flatten
    }

  /**
   * The previous locations of partitions according to the catalog, even if others use them now.
   * Each is paired with the number of the run that replaced it.
   */
  private[relocate] def left(
      session: shim.SparkSession,
      partitions: Map[CatalogTablePartition, Path]): Seq[(String, Path)] = {
    val conf = session.sessionState.newHadoopConf()
    for {
      partition <- partitions.keys.toSeq
      (key, left) <- partition.parameters if key.startsWith(Left)
    } yield {
      val path = new Path(left)
      key.stripPrefix(Left) -> path.getFileSystem(conf).makeQualified(path)
    }
  }

  /**
   * A table's partitions and their locations, read from the catalog rather than from a cache; empty
   * if there is no such table.
   */
  def partitionsOf(
      session: shim.SparkSession,
      table: TableIdentifier): Map[CatalogTablePartition, Path] = {
    val catalog = session.sessionState.catalog.externalCatalog
    val database = table.database.get
    if (!catalog.databaseExists(database) || !catalog.tableExists(database, table.table)) Map.empty
    else {
      val conf = session.sessionState.newHadoopConf()
      catalog.listPartitions(database, table.table).map { partition =>
        val path = new Path(partition.location)
        partition -> path.getFileSystem(conf).makeQualified(path)
      }.toMap
    }
  }
}
