package io.pyzorder.publish.journal

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.pyzorder.Requests

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.storage.{CreateIfAbsent, FileRef, FileSystems, Incarnation, Links, MetadataFiles}
import io.pyzorder.storage.{MoveFile, TableFolder}
import io.pyzorder.storage.metadata.MetadataNames

/**
 * Moves the files of one run. New files are moved from `_zorder/_staging/` to their own paths. Old
 * files are retired, that is, moved to `_zorder/_retired/`. Every move can be repeated, so if the
 * writer is killed, the next writer performs the remaining moves.
 *
 * @param newNames  true if no other file can have had one of the names in `add`. In that case, a
 *                  file with one of these names and the recorded size belongs to the run
 * @param recovered whether the record was read from the journal, which others may be able to
 *                  modify. In that case, only the run's marker proves that files outside the
 *                  table's folder belong to the run, and no such file is deleted without a marker
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
   * The files that `moveIn` or `moveBack` has moved, and their new modification times. Empty on
   * stores where a move keeps the modification time. Excludes files that another writer may have
   * created at the same paths.
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

  /** Creates the run's marker in every folder in which the run moves files. */
  def mark(): Unit = record.folders.foreach { folder =>
    checkNoLink(folder)
    val marker = Marker.path(table, run, record.incarnation, folder)
    if (!FileSystems.exists(marker.getFileSystem(hadoopConf), marker.getParent)) {
      throw ZOrderErrors.conflict(s"${marker.getParent} was dropped")
    }
    val isNew = CreateIfAbsent.of(hadoopConf, marker).create(marker, Array.emptyByteArray)
    if (!isNew && Links.isOne(marker)) throw ZOrderErrors.linked(marker.toString)
  }

  /** The record, with the modification times of the markers. Call this method after `mark`. */
  def marked: RetireRecord =
    record.copy(marked = record.folders.map { folder =>
      val marker = Marker.path(table, run, record.incarnation, folder)
      folder -> marker.getFileSystem(hadoopConf).getFileStatus(marker).getModificationTime
    }.toMap)

  /**
   * Deletes the markers of a run that has ended. While a run is unfinished, a missing marker counts
   * as a conflict.
   */
  def unmark(): Unit = record.folders.foreach { folder =>
    try {
      val marker = Marker.path(table, run, record.incarnation, folder)
      // To delete a link to a folder, Hadoop's local file system would list that folder.
      if (!Links.isOne(marker)) marker.getFileSystem(hadoopConf).delete(marker, false)
    } catch {
      case NonFatal(_) => () // a leftover marker is harmless: its name is unique to this run
    }
  }

  /**
   * Throws if the folder is reached through a link, because its files would then not belong to the
   * table.
   */
  private def checkNoLink(folder: String): Unit =
    if (table.isLinked(folder)) {
      throw ZOrderErrors.linked(table.resolve(folder).toString)
    }

  /**
   * Whether the table still has the incarnation that it had at PREPARE. If so, the table has not
   * been overwritten as a whole.
   */
  def sameIncarnation: Boolean = Incarnation.read(hadoopConf, table).contains(record.incarnation)

  /** Whether the folder is still the one for which RETIRE was written. */
  def isIntact(folder: String): Boolean =
    Marker.present(hadoopConf, table, run, record.incarnation, folder) && sameIncarnation

  /** Throws unless all folders are intact. */
  def checkFolders(): Unit = {
    if (!sameIncarnation) {
      throw ZOrderErrors.conflict(s"${table.root} was overwritten, renamed or dropped")
    }
    record.folders.find(!isIntact(_)).foreach(folder =>
      throw ZOrderErrors.conflict(s"${table.resolve(folder)} was overwritten or dropped"))
  }

  /**
   * Throws unless every input still has the size and modification time that it had when it was
   * read.
   */
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
   * Throws if another writer has created a file with the name of a new file. This can happen if
   * RESTORE puts back files with names such as `part-0.parquet`, which other writers may reuse.
   * After COMMIT, it would be too late to detect this.
   */
  def checkNewNames(): Unit = {
    val replaced = record.retire.map(_.path).toSet
    val names = record.add.map(_.path).filterNot(replaced).map(table.resolve)
    val fs = table.root.getFileSystem(hadoopConf)
    val exists = Requests.inParallel(fs, names)(name =>
      FileSystems.exists(name.getFileSystem(hadoopConf), name))
    names.zip(exists).collectFirst { case (name, true) =>
      throw ZOrderErrors.conflict(s"$name was written by another process")
    }
  }

  /**
   * Throws if a folder also belongs to another table. A partition's folder may itself be the folder
   * of another table, which has its own journal and lock. A run on the other table creates that
   * table's journal before it puts a marker into the folder, and this run puts its marker there
   * before it looks for the other table's journal and markers. If the two runs overlap, at least
   * one of them therefore sees the other.
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
   * The inputs that `retire` leaves to `retireLast`: all links, and one data file per folder.
   * Readers do not follow a link that has been retired. Spark infers the schema and the partition
   * columns before a query reads the journal, and cannot infer them from a folder without visible
   * files.
   */
  private lazy val late: Seq[FileRef] = {
    val last = SummaryFiles.without(record.retire)
      .map(input => input.folder -> input).toMap.values.toSet
    record.retire.filter(input => last(input) || Links.isOne(table.resolve(input.path)))
  }

  /**
   * Moves the inputs, except those in `late`, to their retired paths. Throws if an input is not the
   * file that was read; some inputs may then have been moved already. The writer stops if it has
   * been, or may have been, declared dead. Since `alive` is checked after every move, the writer
   * makes at most one move after it has been declared dead, and it undoes this move itself. No
   * other writer would undo the move, because the writer that undid the run did not see the move
   * and has deleted the markers.
   */
  def retire(alive: () => Boolean, moved: Int => Unit): Unit = {
    var count = 0
    // Also creates the folders for the late inputs, because a full disk must not prevent these
    // inputs from being moved after COMMIT.
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
   * Retires the inputs in `late`. Called after `moveIn`. Skips an input if another file has since
   * taken its name.
   */
  def retireLast(): Unit = late.foreach { input =>
    val (from, to) = (table.resolve(input.path), table.retiredPath(run, input.path))
    val fs = from.getFileSystem(hadoopConf)
    if (sameIncarnation && (!recovered || isIntact(input.folder)) &&
      FileSystems.status(fs, from).exists(isStill(input, _, timed = !isCopied(input.folder)))) {
      MetadataFiles.makeFolder(hadoopConf, to.getParent)
      MoveFile.move(hadoopConf, from, to)
    }
  }

  private def isCopied(folder: String): Boolean =
    recovered && Marker.isCopied(hadoopConf, table, run, record, folder)

  /**
   * Undoes `retire`. If another writer has overwritten a folder, nothing is moved back into it. The
   * folder's retired files remain retired until VACUUM, so the overwritten rows do not come back.
   *
   * Several writers may call this method at the same time. The first one to finish writes DONE
   * before it deletes the markers. Therefore, once DONE exists, all files are back, and a missing
   * marker is not a conflict.
   *
   * @return the problems; empty if all files are back
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
            case MoveFile.TargetTaken => problems += s"$back was recreated"
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
   * Moves the new files into place. Each folder's marker is checked before its files are moved, and
   * all markers are checked again at the end. If another writer has overwritten a folder, the files
   * that were moved into it are removed.
   *
   * @return the conflicts with other writers; empty if there are none
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
            case MoveFile.TargetTaken => problems += s"$to was written by another process"
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
   * Removes the new files from folders that another writer overwrote. A process that deletes a
   * local folder first lists it and then deletes the files one by one, so files that were moved in
   * after the listing are still there.
   *
   * @return the conflicts with other writers; empty if there are none
   */
  def takeBack(): Seq[String] =
    // If another writer took over and finished this run, missing markers are not a conflict,
    // because that writer wrote DONE before it deleted them.
    record.folders.filterNot(isIntact).filterNot(_ => isDone).map { folder =>
      record.add.filter(_.folder == folder).filter(isProvenMine).foreach(remove)
      s"${table.resolve(folder)} was overwritten or dropped"
    }

  /**
   * Like `takeBack`, but for use after DONE. The markers are gone by then, so only an overwrite of
   * the whole table is detected. A writer may call this only while it holds its lease, because a
   * writer that wakes up later may find the files of another incarnation.
   */
  def takeBackAfterDone(held: () => Boolean): Seq[String] =
    if (!sameIncarnation && record.add.count(file =>
        held() && isProvenMine(file) && remove(file)) > 0) {
      Seq(s"${table.root} was overwritten or dropped")
    } else Nil

  /** Whether this run is done in this incarnation of the table. */
  def isDone: Boolean = {
    val done = MetadataNames.record(table, run, "done")
    try Records.isDone(FileSystems.readFully(done.getFileSystem(hadoopConf), done),
        record.incarnation)
    catch { case _: java.io.FileNotFoundException => false }
  }

  /** Deletes files that were staged for this run but not moved into place. */
  def removeStaged(): Unit = {
    val outside = record.add.filter(file => isProvenMine(file) || isIntact(file.folder))
      .map(file => table.stagedPath(run, file.path).getParent).distinct
    (table.staging(run) +: outside).foreach(MetadataFiles.delete(hadoopConf, _))
  }

  /**
   * Whether the file certainly belongs to this run. A recovered record may have been forged by
   * someone who has no write access outside the table's folder. A file outside that folder is
   * therefore treated as the run's only if this process moved it there.
   */
  private def isProvenMine(file: FileRef): Boolean =
    !recovered || !TableFolder.isWhole(file.path) || movedIn(file.path)

  /** Removes a new file if it still belongs to the run, and returns whether it was removed. */
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
    ZOrderErrors.conflict("another write command may have declared this one dead, because this " +
      "command's lease expired without a heartbeat, or its lock was taken")
}
