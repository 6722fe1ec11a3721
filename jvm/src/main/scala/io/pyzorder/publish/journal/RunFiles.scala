package io.pyzorder.publish.journal

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.storage.{CreateIfAbsent, FileRef, FileSystems, Incarnation, Links, MetadataFiles}
import io.pyzorder.storage.{MoveFile, TableFolder}

/**
 * The moves of one run, each of which may be repeated: the writer does them, and the next writer
 * does what is left of them after a kill.
 *
 * @param newNames  no file but the run's own ever had the names of `add`: what is found under one,
 *                  of its size, is that file
 * @param recovered the record was read from the journal, where others may write as well. Outside
 *                  of the table's folder the run's marker is then the proof that it is a run's, and
 *                  without it nothing is deleted there
 */
private[publish] final class RunFiles(
    hadoopConf: Configuration,
    val table: TableFolder,
    run: Long,
    val record: RetireRecord,
    newNames: Boolean = false,
    recovered: Boolean = false) {

  private val placedFiles = mutable.LinkedHashMap[String, FileRef]()
  private val movedIn = mutable.Set[String]()

  /**
   * The files that `moveIn` or `moveBack` has brought to their places, as they are there, where a
   * move is a copy that has a time of its own. Not one that someone else may have put there.
   */
  def placed: Seq[FileRef] = placedFiles.values.toSeq

  private def place(file: FileRef): Unit = {
    val path = table.resolve(file.path)
    val fs = path.getFileSystem(hadoopConf)
    if (!MoveFile.keepsTime(fs)) {
      FileSystems.status(fs, path).filter(_.getLen == file.size).foreach(status =>
        placedFiles(file.path) = file.copy(modificationTime = status.getModificationTime))
    }
  }

  /** Puts the run's marker into every folder it touches. */
  def mark(): Unit = record.folders.foreach { folder =>
    checkNoLink(folder)
    val marker = Marker.path(table, run, record.incarnation, folder)
    if (!FileSystems.exists(marker.getFileSystem(hadoopConf), marker.getParent)) {
      throw ZOrderErrors.conflict(s"${marker.getParent} was dropped")
    }
    CreateIfAbsent.of(hadoopConf, marker).create(marker, Array.emptyByteArray)
  }

  /**
   * Takes the markers away; only after DONE, for a marker that is missing before means a conflict.
   */
  def unmark(): Unit = record.folders.foreach { folder =>
    try {
      val marker = Marker.path(table, run, record.incarnation, folder)
      marker.getFileSystem(hadoopConf).delete(marker, false)
    } catch {
      case NonFatal(_) => () // harmless: its name belongs to this run alone
    }
  }

  /** What lies behind a link in the table's folders is none of the table's to be moved. */
  private def checkNoLink(folder: String): Unit =
    if (table.isLinked(folder)) {
      throw ZOrderErrors.linked(table.resolve(folder).toString)
    }

  /** Whether the table lives the life it lived at PREPARE: it was not overwritten as a whole. */
  def sameIncarnation: Boolean = Incarnation.read(hadoopConf, table).contains(record.incarnation)

  /** Whether the folder is the one that RETIRE was written for. */
  def isIntact(folder: String): Boolean =
    Marker.present(hadoopConf, table, run, record.incarnation, folder) && sameIncarnation

  /** An error unless all folders are. */
  def checkFolders(): Unit = {
    if (!sameIncarnation) {
      throw ZOrderErrors.conflict(s"${table.root} was overwritten, renamed or dropped")
    }
    record.folders.find(!isIntact(_)).foreach(folder =>
      throw ZOrderErrors.conflict(s"${table.resolve(folder)} was overwritten or dropped"))
  }

  /** An error unless every input is the file that was read: there, of that size and time. */
  def checkInputs(): Unit =
    record.retire.groupBy(_.folder).foreach { case (folder, inputs) =>
      val path = table.resolve(folder)
      val found = FileSystems.list(path.getFileSystem(hadoopConf), path)
        .map(s => s.getPath.getName -> (s.getLen, s.getModificationTime)).toMap
      inputs.foreach { input =>
        val file = table.resolve(input.path)
        if (!found.get(file.getName).contains((input.size, input.modificationTime))) {
          throw changed(file)
        }
      }
    }

  /**
   * An error if a folder is touched through another table as well, whose lock is not this one's: a
   * partition's folder may be a table of its own. Such a table has a journal before it puts its
   * marker there; this one puts its marker there before it looks for the journal, and for other
   * markers: of two that come at the same time, at least one sees the other.
   */
  def checkAlone(): Unit = record.folders.foreach { folder =>
    checkNoLink(folder)
    val path = table.resolve(folder)
    val fs = path.getFileSystem(hadoopConf)
    val own = new TableFolder(path)
    if (own != table && FileSystems.exists(fs, own.journal)) {
      throw ZOrderErrors.sharedFolder(path.toString, own.journal.toString)
    }
    FileSystems.list(fs, path).map(_.getPath)
      .find(file => Marker.isForeign(file.getName, record.incarnation))
      .foreach(marker => throw ZOrderErrors.sharedNow(path.toString, marker.toString))
  }

  /**
   * The one old file that stays at its place until the new ones are in: a table folder without any
   * visible file has no schema, and reading its path would fail before the journal is looked at.
   */
  private def last: Option[FileRef] = record.retire.lastOption

  /** Those that wait for `retireLast`; links too, which nobody would read through while retired. */
  private def late: Seq[FileRef] =
    record.retire.filter(input => last.contains(input) || Links.isOne(table.resolve(input.path)))

  /**
   * Moves the inputs but the last away; an error, with some of them moved, when one is not the file
   * that was read. A writer that was or may have been declared dead stops: asked between any two
   * moves whether it is `alive`, it has made one at most since, and takes that back. Whoever undid
   * the run did not see this move and took the markers away, so that nobody else would.
   */
  def retire(alive: () => Boolean, moved: Int => Unit): Unit = {
    var count = 0
    // Those of the last one too: after COMMIT no folder must be missing where a disk is full.
    record.retire.map(input => table.retiredPath(run, input.path).getParent).distinct
      .foreach(MetadataFiles.makeFolder(hadoopConf, _))
    if (!alive()) throw paused
    record.retire.filterNot(late.toSet).foreach { input =>
      val (from, to) = (table.resolve(input.path), table.retiredPath(run, input.path))
      checkSame(from, from, input)
      MoveFile.move(hadoopConf, from, to) match {
        case MoveFile.Moved | MoveFile.AlreadyThere => checkSame(to, from, input)
        case _ => throw changed(from)
      }
      if (!alive()) {
        MoveFile.move(hadoopConf, to, from)
        throw paused
      }
      count += 1
      moved(count)
    }
    late.foreach(input => checkSame(table.resolve(input.path), table.resolve(input.path), input))
  }

  /**
   * After COMMIT and the move-in: the last input too, unless its name holds another file by now.
   */
  def retireLast(): Unit = late.foreach { input =>
    val (from, to) = (table.resolve(input.path), table.retiredPath(run, input.path))
    val fs = from.getFileSystem(hadoopConf)
    if (sameIncarnation && (!recovered || isIntact(input.folder)) &&
      FileSystems.status(fs, from).exists(isStill(input, _, timed = true))) {
      MetadataFiles.makeFolder(hadoopConf, to.getParent)
      MoveFile.move(hadoopConf, from, to)
    }
  }

  /**
   * Undoes `retire`. A folder that was overwritten gets nothing back: its retired files stay where
   * they are until VACUUM, and the rows that the other writer replaced do not come back.
   *
   * Several may do this at once: the first who is through writes DONE before it takes the markers
   * away, so that a marker that is missing after DONE tells nothing, and all files are back.
   *
   * @return what was in the way, empty: all files are back
   */
  def moveBack(moved: Int => Unit): Seq[String] = {
    val problems = mutable.ArrayBuffer[String]()
    var count = 0
    record.retire.groupBy(_.folder).foreach { case (folder, inputs) =>
      val path = table.resolve(folder)
      if (!isIntact(folder)) {
        if (!isDone) problems += s"$path was overwritten or dropped"
      } else {
        inputs.foreach { input =>
          val (back, from) = (table.resolve(input.path), table.retiredPath(run, input.path))
          MoveFile.move(hadoopConf, from, back) match {
            case MoveFile.TargetTaken => problems += s"$back was written anew"
            case MoveFile.FolderGone => problems += s"$path was dropped"
            case MoveFile.Moved => place(input)
            case MoveFile.AlreadyThere | MoveFile.SourceGone => ()
          }
          count += 1
          moved(count)
        }
        if (!isIntact(folder) && !isDone) {
          inputs.foreach { input =>
            placedFiles.remove(input.path)
            MoveFile.move(
              hadoopConf, table.resolve(input.path), table.retiredPath(run, input.path))
          }
          problems += s"$path was overwritten or dropped"
        }
      }
    }
    problems.toSeq
  }

  /**
   * Moves the new files in. The marker of each folder is looked at before and after, and once more
   * for all at the end: what was moved into a folder that someone else overwrote is removed.
   *
   * @return what others did meanwhile, empty: nothing
   */
  def moveIn(moved: Int => Unit): Seq[String] = {
    val problems = mutable.LinkedHashSet[String]()
    var count = 0
    record.add.groupBy(_.folder).foreach { case (folder, files) =>
      if (isIntact(folder)) {
        files.foreach { file =>
          val to = table.resolve(file.path)
          MoveFile.move(hadoopConf, table.stagedPath(run, file.path), to) match {
            case MoveFile.Moved =>
              movedIn += file.path
              place(file)
            case MoveFile.AlreadyThere => if (newNames) place(file)
            case MoveFile.FolderGone => ()
            case MoveFile.TargetTaken => problems += s"$to was written by someone else"
            case MoveFile.SourceGone =>
              if (isIntact(folder) && !isDone) problems += s"$to was deleted"
          }
          count += 1
          moved(count)
        }
      }
    }
    problems ++= takeBack()
    problems.toSeq
  }

  /**
   * Removes the new files from folders that someone else overwrote: on a disk, one that is deleted
   * file by file keeps what came in after it was listed.
   *
   * @return what others did, empty: nothing
   */
  def takeBack(): Seq[String] =
    // Once another writer has taken over and finished this run, its markers are gone rightly; it
    // wrote DONE before it took them away.
    record.folders.filterNot(isIntact).filterNot(_ => isDone).map { folder =>
      record.add.filter(_.folder == folder).filter(isProvenMine).foreach(remove)
      s"${table.resolve(folder)} was overwritten or dropped"
    }

  /**
   * The same after DONE, when there are no markers: of a table that was overwritten as a whole.
   * Only by a writer that still holds its lease: who wakes up later may find another life there.
   */
  def takeBackAfterDone(held: () => Boolean): Seq[String] =
    if (!sameIncarnation && record.add.count(file =>
        held() && isProvenMine(file) && remove(file)) > 0) {
      Seq(s"${table.root} was overwritten or dropped")
    } else Nil

  /** Whether this run, in this life of the table, is finished. */
  def isDone: Boolean = {
    val done = Journal.path(table, run, "done")
    try Records.isDone(FileSystems.readFully(done.getFileSystem(hadoopConf), done),
        record.incarnation)
    catch { case _: java.io.FileNotFoundException => false }
  }

  /** Deletes what was written for this run and never moved in. */
  def removeStaged(): Unit = {
    val outside = record.add.filter(file => isProvenMine(file) || isIntact(file.folder))
      .map(file => table.stagedPath(run, file.path).getParent).distinct
    (table.staging(run) +: outside).foreach(MetadataFiles.delete(hadoopConf, _))
  }

  /** Of a place where others who can forge records cannot write, nothing else is deleted. */
  private def isProvenMine(file: FileRef): Boolean =
    !recovered || !TableFolder.isWhole(file.path) || movedIn(file.path)

  /** Whether it was there. */
  private def remove(file: FileRef): Boolean = {
    placedFiles.remove(file.path)
    val path = table.resolve(file.path)
    val fs = path.getFileSystem(hadoopConf)
    FileSystems.status(fs, path).exists(isStill(file, _, MoveFile.keepsTime(fs))) &&
    fs.delete(path, false)
  }

  private def checkSame(at: Path, name: Path, input: FileRef): Unit = {
    val fs = at.getFileSystem(hadoopConf)
    val renameKeepsTime = at == name || MoveFile.keepsTime(fs)
    if (!FileSystems.status(fs, at).exists(isStill(input, _, renameKeepsTime))) throw changed(name)
  }

  private def isStill(file: FileRef, found: FileStatus, timed: Boolean): Boolean =
    found.getLen == file.size && (!timed || found.getModificationTime == file.modificationTime)

  private def changed(file: Path): Exception =
    ZOrderErrors.conflict(s"$file was replaced or deleted")

  private def paused: Exception =
    ZOrderErrors.conflict("another writing command declared this one dead, or may have done so: " +
      "it gave no sign of life for longer than its lease, or its lock was taken")
}
