package io.pyzorder.publish

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.pyzorder.shim
import org.slf4j.LoggerFactory

import io.pyzorder.common.{StoreFailures, ZOrderErrors, ZOrderException}
import io.pyzorder.index.collect.RowCounts
import io.pyzorder.index.model.{FileEntry, IndexedColumn}
import io.pyzorder.index.store.IndexStore
import io.pyzorder.publish.journal.{Journal, LayoutRecord, PartitionMove, PartitionsRecord}
import io.pyzorder.publish.journal.{RetireRecord, RunFiles, RunRecords, SummaryFiles, SwitchRecord}
import io.pyzorder.publish.relocate.{CatalogSwitch, PartitionLocationSwitch, TableLocationSwitch}
import io.pyzorder.storage.{FailPoints, FileRef, SiblingFolder, TableFolder}

/**
 * The one writer of a table: holds the lock from `begin` to `publish` or `abort`, one of which must
 * be called. List the table's files after `begin`, which may have had to finish an earlier run.
 *
 * What a kill leaves, step by step, for a reader with the extension (Overlay tells how it sees it):
 *  - PREPARE, staged files, markers, index entries of files that do not exist yet: nothing that a
 *    reader looks at. The entries come this early so that a run which is killed after COMMIT loses
 *    no statistics; they count only for a file of that name, size and time.
 *  - RETIRE: the old files, at either place, wherever their folder still has its marker.
 *  - COMMIT: the new files, at either place. By now all old ones but one lie retired, that one is
 *    hidden, the markers and the incarnation were looked at since, and what is
 *    left to do can only go forward.
 *  - DONE: a listing as it is. Markers are taken away after it.
 * The next writer undoes the run before COMMIT and completes it after.
 */
final class Writer private (session: shim.SparkSession, lock: TableLock) {
  import lock.{lease, owner}

  val folder: TableFolder = lock.folder
  val run: Long = lock.run
  val incarnation: String = lock.incarnation

  private val hadoopConf = session.sessionState.newHadoopConf()
  private val records = new RunRecords(hadoopConf, folder, run)
  private var files = new RunFiles(
    hadoopConf, folder, run, RetireRecord(incarnation, Nil, Nil, Nil))
  private var moving: Option[CatalogSwitch] = None
  private var ended = false
  private var committing = false

  /** For the next OPTIMIZE: what the files that this run publishes are laid out with. */
  var layout: Option[LayoutRecord] = None

  /** Files of the table whose rows are being read: what became of them may explain a failure. */
  var reading: Seq[FileRef] = Nil

  /** The folder that new files are written to. */
  def staging: Path = folder.staging(run)

  /** When this run began, in milliseconds since the epoch by the store's clock. */
  def began: Long = {
    val path = Journal.path(folder, run, "prepare")
    path.getFileSystem(hadoopConf).getFileStatus(path).getModificationTime
  }

  /** Where the new file that will be named `path` is written to. */
  def stagedPath(path: String): Path = folder.stagedPath(run, path)

  /** An error unless the store has so many bytes left: the table doubles until VACUUM. */
  def checkSpace(bytes: Long): Unit = {
    val left = folder.root.getFileSystem(hadoopConf).getStatus(folder.root).getRemaining
    if (left < bytes) {
      files.checkFolders() // a disk says that a folder that is gone has no space left
      throw ZOrderErrors.tooLittleSpace(folder.root.toString, bytes, left)
    }
  }

  /** An error if a partition's folder, named as in FileRef.folder, is another table's as well. */
  def checkAlone(folders: Seq[String]): Unit =
    new RunFiles(hadoopConf, folder, run, RetireRecord(incarnation, Nil, Nil, folders)).checkAlone()

  /**
   * Replaces files of the table by the staged ones, and ends this writer. Either all of it happens
   * or, with an error, nothing; only folders that others overwrote meanwhile are left as they left
   * them, with an error as well.
   *
   * @param retire  the files that were read, as they were then; SummaryFiles go with them
   * @param staged  the files that hold the same rows
   * @param entries what the index shall say of the staged ones; modification times are set here
   * @param columns from the columns that had statistics to those that shall have them
   * @param rowsOf  the files whose rows the staged ones hold, where these are none to retire
   */
  def publish(
      retire: Seq[FileRef],
      staged: Seq[StagedFile],
      entries: Seq[FileEntry],
      columns: Seq[IndexedColumn] => Seq[IndexedColumn],
      rowsOf: Seq[Path] = Nil): Unit = {
    var committed = false
    try {
      val folders = (retire.map(_.folder) ++ staged.map(_.folder)).flatMap(SummaryFiles.around)
      prepareMoves(folders, retire, staged, entries, columns, rowsOf)
      records.retire(files.record)
      reach("after-retire")
      files.retire(() => alive, count => if (count == 1) reach("mid-retire"))
      reach("before-commit")
      files.checkFolders()
      commit()
      committed = true
    } finally {
      if (!committed) abort()
    }
    complete()
  }

  /**
   * Publishes by a switch of the table's location to a folder that `fill` makes the table of, and
   * ends this writer. Either all of it happens or, with an error, nothing.
   *
   * @param table in the session catalog, with its database
   * @param read  every file of the table, as it was read
   * @param fill  given the new folder, which is empty, publishes the table's rows there
   * @return the new folder
   */
  def switchLocation(table: TableIdentifier, read: Seq[FileRef])(
      fill: TableFolder => Unit): TableFolder = {
    val record = SwitchRecord(incarnation, table, SiblingFolder.newName(folder), read)
    val switch = new TableLocationSwitch(session, folder, run, record)
    switching(switch, records.switch(record))(fill(switch.to))
    switch.to
  }

  /**
   * Publishes by a switch of partitions' locations to folders that `fill` writes files for, and
   * ends this writer. Either all of it happens or, with an error, nothing; only partitions that
   * others overwrote meanwhile are left as they left them, with an error as well.
   *
   * @param table in the session catalog, with its database
   * @param moves the partitions
   * @param read  every file of theirs, as it was read
   * @param fill  given the names of the new folders, as in FileRef.folder, by those of the old
   *              ones: the files that hold the same rows, their entries without modification times,
   *              and the columns as `publish` wants them
   * @return the folder that the new folders are in
   */
  def switchPartitions(table: TableIdentifier, moves: Seq[PartitionMove], read: Seq[FileRef])(
      fill: Map[String, String] => Filled): TableFolder = {
    val record = PartitionsRecord(incarnation, table, SiblingFolder.newName(folder), moves, read)
    val switch = new PartitionLocationSwitch(session, folder, run, record)
    switching(switch, records.partitions(record)) {
      val filled =
        fill(switch.moves.map(move => move.what.from -> folder.relativize(move.to)).toMap)
      val above = moves.flatMap(move => SummaryFiles.around(move.from).drop(1))
      prepareMoves(above, Nil, filled.staged, filled.entries, filled.columns,
        rowsOf = read.map(file => folder.resolve(file.path)))
      records.retire(files.record)
    }
    switch.filled
  }

  private def switching(switch: CatalogSwitch, record: => Unit)(fill: => Unit): Unit = {
    moving = Some(switch)
    var committed = false
    try {
      switch.check()
      record
      reach("switch-recorded")
      switch.make()
      fill
      reach("switch-filled")
      switch.carry()
      switch.check()
      if (!lease.held) throw declaredDead
      files.retire(() => alive, _ => ()) // summaries alone: data files stay in their old folders
      commit()
      committed = true
    } finally {
      if (!committed) abort()
    }
    complete()
  }

  /**
   * What to tell of a failure before or in `publish`: the conflict, where others changed the table
   * or the files that were being read, else the failure as it is.
   */
  private[publish] def reason(failure: Throwable): Throwable = failure match {
    case told: ZOrderException => told
    case other =>
      val read = new RunFiles(hadoopConf, folder, run, RetireRecord(incarnation, reading, Nil, Nil))
      try {
        read.checkFolders()
        read.checkInputs()
        if (ZOrderErrors.isMissing(other, folder.root)) {
          throw ZOrderErrors.conflict(s"a file of $folder was missing for a moment")
        }
        other
      } catch {
        case conflict: ZOrderException => ZOrderErrors.because(other, conflict)
        case NonFatal(_) => other
      }
  }

  private def commit(): Unit = {
    committing = true
    val isMine =
      try records.commit(incarnation, owner)
      catch {
        case NonFatal(full) if StoreFailures.isFull(full) =>
          committing = false // refused, not lost: room may be made for ABORT
          throw full
      }
    if (!isMine) throw declaredDead
  }

  private def declaredDead: Exception =
    ZOrderErrors.conflict("another writing command declared this one dead and undid it")

  /** Gives up: nothing of this run is seen any more. Does nothing after `publish` or `abort`. */
  def abort(): Unit = if (!ended) {
    val interrupted = Thread.interrupted()
    try {
      if (files.sameIncarnation) {
        // Nobody else can commit this run. Where the disk is full, this is room for the records.
        if (!committing) files.removeStaged()
        // Not aborted: the COMMIT whose outcome was not known arrived after all.
        if (records.abort(incarnation, owner)) {
          moving.foreach(_.undo())
          Recovery.undo(session, files, _ => ())
        } else {
          Recovery.complete(session, files, _ => ())(moving, () => lease.held, _ => ())
        }
        Recovery.close(records, files) // also after another's: it knew of no marker put since
      } else {
        moving.foreach(_.undo())
      }
    } catch {
      case NonFatal(failure) =>
        Writer.log.warn(s"Run $run of $folder could not be undone; the next writing command on " +
            "the table does it", failure)
    } finally {
      end()
      if (interrupted) Thread.currentThread().interrupt()
    }
  }

  /** Whether nobody has declared this writer dead, nor can have done so by the end of its lease. */
  private def alive: Boolean = lease.held && !records.isDecided

  /** `summarized`: folders whose SummaryFiles are retired as well, named as in FileRef.folder. */
  private def prepareMoves(
      summarized: Seq[String],
      retire: Seq[FileRef],
      staged: Seq[StagedFile],
      entries: Seq[FileEntry],
      columns: Seq[IndexedColumn] => Seq[IndexedColumn],
      rowsOf: Seq[Path]): Unit = {
    files.checkFolders() // no folders yet: whether the table was overwritten as a whole
    val added = staged.map { file =>
      require(file.stagedPath == stagedPath(file.path), s"${file.stagedPath} is no staged path")
      val status = file.stagedPath.getFileSystem(hadoopConf).getFileStatus(file.stagedPath)
      require(status.getLen == file.size, s"${file.stagedPath} has not ${file.size} bytes")
      FileRef(file.path, file.size, status.getModificationTime)
    }
    // Summaries first: the last file of all stays until the new ones are in, and must be visible.
    val replaced = SummaryFiles.in(hadoopConf, folder, summarized) ++ retire
    val folders = (replaced ++ added).map(_.folder).distinct
    files = new RunFiles(
      hadoopConf, folder, run, RetireRecord(incarnation, replaced, added, folders, layout))
    files.checkInputs()
    val (read, written) = (
      retire.map(file => folder.resolve(file.path)) ++ rowsOf,
      staged.filterNot(file => SummaryFiles.isOne(file.path)))
    try checkRows(read, written)
    catch {
      case NonFatal(failure) =>
        files.checkInputs() // a better reason, if one of them is gone
        throw failure
    }
    reach("after-verify")
    files.mark()
    reach("after-markers")
    files.checkAlone()
    files.checkInputs()
    files.checkFolders()
    if (entries.nonEmpty) index(added, entries, columns)
    reach("after-index")
  }

  private def index(
      added: Seq[FileRef],
      entries: Seq[FileEntry],
      columns: Seq[IndexedColumn] => Seq[IndexedColumn]): Unit = {
    val times = added.map(file => file.path -> file.modificationTime).toMap
    val fresh = entries.map(e => e.copy(modificationTime = times(e.path)))
    IndexStore.publish(
      session, folder, columns, old => old.filterNot(e => times.contains(e.path)) ++ fresh,
      life = Some(incarnation))
  }

  private def complete(): Unit =
    try {
      reach(if (moving.isEmpty) "after-commit" else "switch-committed")
      val problems =
        Recovery.complete(session, files, count => if (count == 1) reach("mid-move-in"))(
          moving, () => lease.held, reach)
      reach("before-done")
      if (!files.isDone) close()
      reach("after-done")
      val all = problems ++ files.takeBackAfterDone(() => lease.held)
      if (all.nonEmpty) throw ZOrderErrors.conflict(all.distinct.mkString("; "))
    } catch {
      case told: ZOrderException => throw told
      case NonFatal(failure) =>
        val root = folder.root.toString
        val told = moving.fold(ZOrderErrors.unfinished(root, failure)) { switch =>
          ZOrderErrors.unfinishedSwitch(root, switch.filled.root.toString, failure)
        }
        throw ZOrderErrors.because(failure, told)
    } finally {
      end()
    }

  /** What is left can be done at any time: every reader sees the new files at their places. */
  private def close(): Unit =
    try Recovery.close(records, files)
    catch {
      case NonFatal(failure) =>
        Writer.log.warn(s"Run $run of $folder is complete, but its end could not be recorded; " +
            "the next writing command on the table does it", failure)
    }

  /** What was written must hold as many rows as what was read, by the files' own footers. */
  private def checkRows(inputs: Seq[Path], staged: Seq[StagedFile]): Unit = {
    val read = RowCounts.sum(session, inputs)
    val written = RowCounts.sum(session, staged.map(_.stagedPath))
    val counted = staged.map(_.numRecords).sum
    if (read != written || written != counted) {
      throw ZOrderErrors.rowCount(folder.root.toString, read, written, counted)
    }
  }

  private def end(): Unit = {
    ended = true
    lease.end()
    try {
      if (!files.sameIncarnation || records.folderBeingDeleted) {
        files.unmark() // also what came into a folder that was just being deleted
        records.clear(incarnation)
      }
      val elsewhere = files.record.add.exists(file => TableFolder.isWhole(file.path))
      if (lock.isFirst && files.sameIncarnation && !elsewhere)
        LeftoverCleanup.clearIfEmpty(hadoopConf, folder)
    } catch {
      case NonFatal(_) => () // the store cannot be asked
    }
  }

  private def reach(point: String): Unit = FailPoints.reach(session.sessionState.conf, point)
}

/**
 * What a folder was filled with.
 *
 * @param staged  its files
 * @param entries what the index shall say of them, without modification times
 * @param columns from the columns that had statistics to those that shall have them
 */
final case class Filled(
    staged: Seq[StagedFile],
    entries: Seq[FileEntry],
    columns: Seq[IndexedColumn] => Seq[IndexedColumn])

object Writer {

  private val log = LoggerFactory.getLogger(classOf[Writer])

  /** Gives the writer to `body`, and up afterwards unless that has published. */
  def use[T](writer: Writer)(body: => T): T =
    try body
    catch { case NonFatal(failure) => throw writer.reason(failure) }
    finally writer.abort()

  /**
   * Takes the table's lock, after having finished what a dead writer left.
   *
   * @param root      the table's folder
   * @param operation what others are told that the lock is held for, such as OPTIMIZE
   */
  def begin(session: shim.SparkSession, root: Path, operation: String): Writer = {
    val fs = root.getFileSystem(session.sessionState.newHadoopConf())
    begin(session, new TableFolder(fs.makeQualified(root)), operation)
  }

  /** The same of a table that the catalog may know. */
  def begin(session: shim.SparkSession, folder: TableFolder, operation: String): Writer = {
    val writer = new Writer(session, TableLock.take(session, folder, operation))
    writer.reach("after-prepare")
    writer
  }
}
