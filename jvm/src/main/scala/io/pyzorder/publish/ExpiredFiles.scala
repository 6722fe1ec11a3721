package io.pyzorder.publish

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

import io.pyzorder.publish.journal.{Journal, Lease, Marker, Records}
import io.pyzorder.storage.{CreateIfAbsent, FileSystems, Incarnation, RunNumber, TableFolder}

/**
 * Files of ours that nobody can ask for any more: those that a run replaced longer ago than they
 * are kept, and what dead writers left in their staging folders and of records. Nothing else is
 * looked at, so that nothing else is deleted.
 *
 * @param outside folders of partitions that lie outside of the table's folder
 */
final class ExpiredFiles(hadoopConf: Configuration, table: TableFolder, outside: Seq[Path]) {

  /**
   * @param kept milliseconds since a run ended for which the files it replaced are kept
   * @param at   milliseconds since the epoch, by the store's clock
   * @param busy run whose files are not looked at: that of a writer at work
   */
  def find(kept: Long, at: Long, busy: Option[Long]): Seq[FileStatus] =
    halves(at, kept) ++ replacedOrStaged(kept, at, busy) ++ outside.flatMap(markers(_, busy))

  /** What a recovery does not see: markers outside of runs that were killed before RETIRE. */
  private def markers(folder: Path, busy: Option[Long]): Seq[FileStatus] =
    incarnation.toSeq.flatMap(life =>
      list(folder).filter(file =>
        Marker.runOf(file.getPath.getName, life).exists(run => !busy.contains(run))))

  private lazy val incarnation = Incarnation.read(hadoopConf, table)

  /** What a writer that was killed while it made a record or a pointer left of it. */
  private def halves(at: Long, kept: Long): Seq[FileStatus] =
    Seq(table.zorder, table.journal, table.index).flatMap(list).filter { file =>
      file.getPath.getName.startsWith(CreateIfAbsent.Temporary) &&
      at - file.getModificationTime >= math.max(kept, ExpiredFiles.SurelyDead)
    }

  /**
   * Of these, what can go without a lock: files that a run replaced which was done so long ago.
   * Of all commands only a RESTORE would read them: none while one is under way.
   */
  def replaced(kept: Long): Seq[FileStatus] = {
    val journal = Journal.read(hadoopConf, table)
    if (journal.unfinished && journal.prepare.forall(_.operation == Records.Restore)) Nil
    else {
      val at = Lease.storeTime(hadoopConf, table)
      val ended = Journal.ended(hadoopConf, table).filter(at - _._2 >= kept)
      runFolders.collect { case (run, true, folder) if ended.contains(run) => folder.getPath }
        .flatMap(filesBelow).filter(_.getPath.getName.endsWith(".retired"))
    }
  }

  private def replacedOrStaged(kept: Long, at: Long, busy: Option[Long]): Seq[FileStatus] = {
    val ended = Journal.ended(hadoopConf, table)
    val idle = runFolders.filterNot { case (run, _, _) => busy.contains(run) }
    idle.flatMap { case (run, isRetired, folder) =>
      // Whoever writes into the table's journal need not have the right to delete elsewhere.
      val own = TableFolder.isAtOrBelow(folder.getPath, table.root)
      val made = folder.getModificationTime
      val since = if (own) ended.getOrElse(run, made) else ended.get(run).fold(made)(made.max)
      val suffix = if (isRetired) ".retired" else ".staged"
      if (isRetired && at - since < kept) Nil
      else filesBelow(folder.getPath).filter(_.getPath.getName.endsWith(suffix))
    }
  }

  /**
   * Deletes the files, and the folders that this leaves empty.
   *
   * @param deleted told after each file how many there were so far
   */
  def delete(files: Seq[FileStatus], deleted: Int => Unit): Unit = {
    deleteFiles(files, deleted)
    runFolders.foreach { case (_, _, folder) =>
      val path = folder.getPath
      if (filesBelow(path).isEmpty) path.getFileSystem(hadoopConf).delete(path, true)
    }
  }

  /** Leaves the folders, which a run that is under way may need. */
  def deleteFiles(files: Seq[FileStatus], deleted: Int => Unit): Unit =
    files.zipWithIndex.foreach { case (file, i) =>
      file.getPath.getFileSystem(hadoopConf).delete(file.getPath, false)
      deleted(i + 1)
    }

  /** Number, whether of retired files (else of staged ones), and folder, of all runs. */
  private def runFolders: Seq[(Long, Boolean, FileStatus)] =
    for {
      home <- (table.zorder +: alone.map(new Path(_, TableFolder.Name))).distinct
      (place, isRetired) <- Seq("_retired" -> true, "_staging" -> false)
      folder <- list(new Path(home, place)) if folder.isDirectory
      run <- RunNumber.ofFolder(folder.getPath.getName)
    } yield (run, isRetired, folder)

  /** Not the folders of partitions that are tables of their own, whose runs have numbers too. */
  private lazy val alone: Seq[Path] = outside.filterNot { folder =>
    FileSystems.exists(folder.getFileSystem(hadoopConf), new TableFolder(folder).journal)
  }

  private def filesBelow(folder: Path): Seq[FileStatus] = list(folder).flatMap { entry =>
    if (entry.isDirectory) filesBelow(entry.getPath) else Seq(entry)
  }

  private def list(folder: Path): Seq[FileStatus] =
    FileSystems.list(folder.getFileSystem(hadoopConf), folder)
}

private object ExpiredFiles {

  /** Milliseconds after which a file that is made in one piece has no writer any more. */
  private val SurelyDead = 3600L * 1000
}
