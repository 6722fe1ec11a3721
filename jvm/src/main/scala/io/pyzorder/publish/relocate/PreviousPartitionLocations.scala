package io.pyzorder.publish.relocate

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.{ZOrderErrors, ZOrderException}
import io.pyzorder.publish.journal.{Journal, Records, RetireRecord, RunFiles, SummaryFiles}
import io.pyzorder.storage.{CreateIfAbsent, FileRef, FileSystems, MetadataFiles, SiblingFolder}
import io.pyzorder.storage.TableFolder

/**
 * The previous folders that the table's journal records for the table's partitions, except those
 * that VACUUM has deleted.
 *
 * @param table the table's name in the catalog; None if it was named by its path, in which case its
 *              partitions are unknown
 */
private[relocate] final class PreviousPartitionLocations(
    session: shim.SparkSession,
    folder: TableFolder,
    table: Option[TableIdentifier]) {

  private val hadoopConf = session.sessionState.newHadoopConf()
  private val fs = folder.root.getFileSystem(hadoopConf)

  private lazy val partitions: Map[CatalogTablePartition, Path] =
    table.fold(Map.empty[CatalogTablePartition, Path])(
      PartitionLocationSwitch.partitionsOf(session, _))

  private lazy val locations: Map[Map[String, String], Path] =
    partitions.map { case (partition, place) => partition.spec -> place }

  /** The previous locations in the catalog, even if others have overwritten or recreated them. */
  private lazy val noted: Set[Path] =
    PartitionLocationSwitch.left(session, partitions).map(_._2).toSet

  /**
   * The switches that VACUUM has not marked as settled yet (see `settled`), oldest first. Each
   * switch is paired with the time at which its DONE was written, according to the store's clock.
   */
  private lazy val switches: Seq[(PartitionLocationSwitch, Long)] =
    if (table.isEmpty) Nil
    else {
      lazy val ended = Journal.ended(hadoopConf, folder)
      committed.filterNot(switch => FileSystems.exists(fs, settled(switch)))
        .flatMap(switch => ended.get(switch.run).map(switch -> _))
    }

  private lazy val committed: Seq[PartitionLocationSwitch] =
    Journal.runs(hadoopConf, folder).sortBy(_.run).flatMap { state =>
      state.partitions.filter(_ => state.done && state.outcome.exists(_.commit))
        .map(new PartitionLocationSwitch(session, folder, state.run, _))
    }

  private lazy val named: Set[Path] = locations.values.toSet

  /**
   * Folders that no longer belong to this table, because another table in the database now uses
   * them.
   */
  private lazy val taken: Set[Path] = table.fold(Set.empty[Path]) { own =>
    val folders = left.keySet
    CoLocatedTables.of(session, own.database.get, table, folders + folder.root).map(_._1).toSet
  }

  private def isPrevious(from: String): Boolean =
    folder.holds(from) ||
      TableFolder.isWhole(from) && !TableFolder.leaves(from) && noted(folder.resolve(from))

  /** The previous folders, each with the last run that replaced it. */
  private lazy val left: Map[Path, Long] =
    committed.flatMap(switch =>
      switch.moves.filter(move => isPrevious(move.what.from)).map(_.from -> switch.run)).toMap

  /**
   * The moves of a run, except those whose previous folder is now used by a partition or by another
   * table. If a later run has moved a partition out of the same folder again, the earlier move is
   * left out, because the later run has read the files that were added in between. Includes moves
   * from folders that no longer contain the run's mark; files in these folders may belong to others
   * and must be neither read nor deleted.
   */
  private def anyLeft(switch: PartitionLocationSwitch): Seq[switch.Move] =
    if (taken(folder.root)) Nil
    else switch.moves.filter(move => isPrevious(move.what.from))
      .filterNot(move => named(move.from) || left(move.from) > switch.run || taken(move.from))

  private def ownLeft(switch: PartitionLocationSwitch): Seq[switch.Move] =
    anyLeft(switch).filter(move => folder.holds(move.what.from))

  /**
   * Copies files to a partition's current location if an INSERT that was planned before a switch
   * has added them to a previous folder, even if the partition has been overwritten since. Whether
   * the INSERT or the overwrite came first cannot be determined, because a file's modification time
   * is the time at which a task wrote it, not the time at which the INSERT committed. Throws
   * overwrittenBehind if a previous folder was overwritten.
   */
  def carry(): Unit = checked(_.carry(_, folder))

  /** Throws overwrittenBehind if a previous folder was overwritten. */
  def check(): Unit = checked((_, _) => ())

  /**
   * Calls `act` for each previous folder that contains added files not yet copied. The second
   * argument is the current location of the folder's partition.
   */
  private def checked(act: (PreviousLocation, Path) => Unit): Unit = for {
    (switch, _) <- switches
    move <- anyLeft(switch) if move.left.late.nonEmpty
    place <- locations.get(move.what.spec)
  } {
    if (!folder.holds(move.what.from) || move.left.incomplete) {
      throw ZOrderErrors.overwrittenBehind(move.from.toString, place.toString)
    }
    act(move.left, place)
  }

  /** The partitions' files in those previous folders whose retention period has ended. */
  def garbage(kept: Long, at: Long): Seq[FileStatus] =
    for {
      switch <- expired(kept, at)
      move <- ownLeft(switch)
      file <- move.left.ownFiles
    } yield file

  /**
   * Deletes the files in `garbage`, and folders that become empty. Stops at the first run whose
   * previous folders contain added files that have not been copied yet.
   *
   * @param deleted called after each file with the number of files deleted so far for the same run
   */
  def delete(kept: Long, at: Long, deleted: Int => Unit): Unit =
    expired(kept, at).foreach { switch =>
      var count = 0
      ownLeft(switch).foreach { move =>
        move.left.ownFiles.foreach { file =>
          fs.delete(file.getPath, false)
          count += 1
          deleted(count)
        }
        fs.delete(new Path(move.from, TableFolder.Name), true)
        SummaryFiles.delete(hadoopConf, move.from)
        clear(move.from)
      }
      if (!taken(folder.root) && !switch.moves.exists(move =>
          folder.holds(move.what.from) && named(move.from))) {
        MetadataFiles.delete(hadoopConf, new Path(folder.zorder, s"_carried/_${switch.run}"))
        MetadataFiles.makeFolder(hadoopConf, settled(switch).getParent)
        CreateIfAbsent.of(hadoopConf, settled(switch))
          .create(settled(switch), Array.emptyByteArray)
      }
    }

  /**
   * Deletes the folder if it is empty, and then its empty ancestors in the table's folder or in
   * folders that the table's switches created. A folder is deleted only if it has the name of a
   * partition (`name=value`) or of a folder that a switch created.
   */
  private def clear(path: Path): Unit =
    if (path != folder.root && (path.getName.contains("=") ||
        SiblingFolder.isOne(path.getName))) {
      if (FileSystems.exists(fs, path) && FileSystems.list(fs, path).isEmpty) {
        fs.delete(path, false)
        val homes = folder.root +: committed.map(_.filled.root)
        if (homes.exists(TableFolder.isAtOrBelow(path.getParent, _))) clear(path.getParent)
      }
    }

  /**
   * The last OPTIMIZE, if it switched partitions. A RESTORE would undo this OPTIMIZE. Throws
   * ZORDER_CANNOT_RESTORE if this OPTIMIZE cannot be undone.
   *
   * @param after the number of the last run that replaced files in place
   */
  def lastSwitch(after: Long): Option[LastSwitch.OfPartitions] =
    switches.lastOption.map(_._1).filter(_.run > after).map { switch =>
      val root = folder.root.toString
      val state = Journal.runs(hadoopConf, folder).find(_.run == switch.run).get
      if (state.prepare.exists(_.operation == Records.Restore)) {
        throw ZOrderErrors.oneRestoreAtMost(root)
      }
      val added = state.retire.fold(Seq.empty[FileRef])(_.add)
        .map(file => state.placed.find(_.path == file.path).getOrElse(file))
      switch.moves.foreach { move =>
        if (!isPrevious(move.what.from)) {
          throw ZOrderErrors.restorePlaceUnknown(root, move.toString, move.what.from)
        }
        if (!locations.get(move.what.spec).contains(move.to)) {
          throw ZOrderErrors.restorePartitionChanged(root, move.toString)
        }
        if (!folder.holds(move.what.from) || move.left.incomplete) {
          throw ZOrderErrors.restoreOldFilesChanged(root, move.from.toString)
        }
      }
      val there = new RunFiles(
        hadoopConf, folder, switch.run, RetireRecord(switch.record.incarnation, added, Nil, Nil))
      try there.checkInputs()
      catch {
        case _: ZOrderException => throw ZOrderErrors.restoreNewFilesChanged(root)
      }
      LastSwitch.OfPartitions(switch, added)
    }

  private def expired(kept: Long, at: Long): Seq[PartitionLocationSwitch] =
    switches.takeWhile { case (switch, since) =>
      at - since >= kept && anyLeft(switch).forall(_.left.late.isEmpty)
    }.map(_._1)

  /** The file whose existence records that nothing is left in a run's old folders. */
  private def settled(switch: PartitionLocationSwitch): Path =
    new Path(folder.zorder, s"_carried/_${switch.run}.settled")
}
