package io.pyzorder.publish

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

import io.pyzorder.publish.journal.{Journal, Lease, Marker, Records}
import io.pyzorder.storage.{CreateIfAbsent, FileSystems, Incarnation, RunNumber, TableFolder}

/**
 * Finds and deletes pyzorder's expired files: replaced files whose retention period has ended, and
 * staged files, partial records and markers that dead writers left behind. It never looks at other
 * files, so it cannot delete them.
 *
 * @param outside the partition folders that are outside the table's folder
 */
final class ExpiredFiles(hadoopConf: Configuration, table: TableFolder, outside: Seq[Path]) {

  /**
   * Finds all expired files.
   *
   * @param kept how long replaced files are kept after the end of the run, in milliseconds
   * @param at   the current time in milliseconds since the epoch, according to the store's clock
   * @param busy the run of an active writer; the files of this run are ignored
   */
  def find(kept: Long, at: Long, busy: Option[Long]): Seq[FileStatus] =
    halves(at, kept) ++ replacedOrStaged(kept, at, busy) ++ outside.flatMap(markers(_, busy))

  /**
   * The markers in `folder`, a partition folder outside the table's folder, except those of the run
   * `busy`. If a run has no RETIRE record, Recovery does not find its markers in such a folder.
   */
  private def markers(folder: Path, busy: Option[Long]): Seq[FileStatus] =
    incarnation.toSeq.flatMap(current =>
      list(folder).filter(file =>
        Marker.runOf(file.getPath.getName, current).exists(run => !busy.contains(run))))

  private lazy val incarnation = Incarnation.read(hadoopConf, table)

  /**
   * Temporary files of writers that were killed while creating a record or a snapshot's pointer.
   */
  private def halves(at: Long, kept: Long): Seq[FileStatus] =
    Seq(table.zorder, table.journal, table.index).flatMap(list).filter { file =>
      file.getPath.getName.startsWith(CreateIfAbsent.Temporary) &&
      at - file.getModificationTime >= math.max(kept, ExpiredFiles.SurelyDead)
    }

  /**
   * Finds the expired files that can be deleted without the lock. These are the files that finished
   * runs replaced. No files are returned during a RESTORE, the only command that reads such files.
   */
  def replaced(kept: Long): Seq[FileStatus] = {
    val journal = Journal.read(hadoopConf, table)
    if (journal.unfinished && journal.prepare.forall(_.operation == Records.Restore)) Nil
    else {
      val at = Lease.storeTime(hadoopConf, table)
      val ended = Journal.ended(hadoopConf, table)
      runFolders.collect {
        case (run, true, folder)
            if ended.get(run).exists(end => at - since(folder, Some(end)) >= kept) =>
          folder.getPath
      }.flatMap(filesBelow).filter(_.getPath.getName.endsWith(".retired"))
    }
  }

  /**
   * The time at which the retention period of a run's folder starts. An attacker who can forge DONE
   * in the table's journal does not necessarily have permission to delete files outside the table's
   * folder. Moreover, a run's folder outside the table's folder may belong to another table. The
   * retention period of such a folder therefore starts no earlier than the folder's modification
   * time.
   */
  private def since(folder: FileStatus, ended: Option[Long]): Long = {
    val modified = folder.getModificationTime
    if (isInside(folder)) ended.getOrElse(modified) else ended.fold(modified)(modified.max)
  }

  private def isInside(file: FileStatus): Boolean =
    TableFolder.isAtOrBelow(file.getPath, table.root)

  /** The staged files that a run's record names. */
  private def recorded(run: Long): Set[Path] =
    Journal.runs(hadoopConf, table).find(_.run == run).flatMap(_.retire).toSeq
      .flatMap(_.add).map(file => table.stagedPath(run, file.path)).toSet

  private def replacedOrStaged(kept: Long, at: Long, busy: Option[Long]): Seq[FileStatus] = {
    val ended = Journal.ended(hadoopConf, table)
    val idle = runFolders.filterNot { case (run, _, _) => busy.contains(run) }
    idle.flatMap { case (run, isRetired, folder) =>
      val suffix = if (isRetired) ".retired" else ".staged"
      // Outside the table's folder, another table's writer may be staging files.
      lazy val known = recorded(run)
      def isOwn(file: FileStatus): Boolean =
        isRetired || isInside(file) || known(file.getPath) ||
          at - file.getModificationTime >= math.max(kept, ExpiredFiles.SurelyDead)
      if (isRetired && at - since(folder, ended.get(run)) < kept) Nil
      else filesBelow(folder.getPath).filter(_.getPath.getName.endsWith(suffix)).filter(isOwn)
    }
  }

  /**
   * Deletes files, and the run folders that become empty.
   *
   * @param deleted called after each file with the number of files deleted so far
   */
  def delete(files: Seq[FileStatus], deleted: Int => Unit): Unit = {
    deleteFiles(files, deleted)
    runFolders.foreach { case (_, _, folder) =>
      val path = folder.getPath
      if (filesBelow(path).isEmpty) path.getFileSystem(hadoopConf).delete(path, true)
    }
  }

  /** Deletes only files. Folders are kept, because an active run may need them. */
  def deleteFiles(files: Seq[FileStatus], deleted: Int => Unit): Unit =
    files.zipWithIndex.foreach { case (file, i) =>
      file.getPath.getFileSystem(hadoopConf).delete(file.getPath, false)
      deleted(i + 1)
    }

  /**
   * The folders of all runs, each with the run's number and a flag. The flag is true for a folder
   * of replaced files and false for a folder of staged files.
   */
  private def runFolders: Seq[(Long, Boolean, FileStatus)] =
    for {
      home <- (table.zorder +: alone.map(new Path(_, TableFolder.Name))).distinct
      (place, isRetired) <- Seq("_retired" -> true, "_staging" -> false)
      folder <- list(new Path(home, place)) if folder.isDirectory
      run <- RunNumber.ofFolder(folder.getPath.getName)
    } yield (run, isRetired, folder)

  /**
   * The folders in `outside`, except those that are themselves tables (each table numbers its own
   * runs) and those that contain the marker of another table's unfinished run.
   */
  private lazy val alone: Seq[Path] = outside.filterNot { folder =>
    FileSystems.exists(folder.getFileSystem(hadoopConf), new TableFolder(folder).journal) ||
    list(folder).exists(file =>
      Marker.isForeign(file.getPath.getName, incarnation.getOrElse("")))
  }

  private def filesBelow(folder: Path): Seq[FileStatus] =
    FileSystems.filesBelow(folder.getFileSystem(hadoopConf), folder)

  private def list(folder: Path): Seq[FileStatus] =
    FileSystems.list(folder.getFileSystem(hadoopConf), folder)
}

private object ExpiredFiles {

  /**
   * The age in milliseconds at which a temporary or staged file is assumed to belong to a dead
   * writer.
   */
  private val SurelyDead = 3600L * 1000
}
