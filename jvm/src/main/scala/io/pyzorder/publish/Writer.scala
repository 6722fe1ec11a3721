package io.pyzorder.publish

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.pyzorder.shim
import org.slf4j.LoggerFactory

import io.pyzorder.common.{StoreFailures, ZOrderErrors, ZOrderException}
import io.pyzorder.index.collect.RowCounts
import io.pyzorder.index.model.{FileEntry, IndexedColumn}
import io.pyzorder.index.store.{Coverage, IndexPublisher, IndexStore, ListedTable, SnapshotRef}
import io.pyzorder.publish.journal.{LayoutRecord, PartitionMove, PartitionsRecord, RetireRecord}
import io.pyzorder.publish.journal.{RunFiles, RunRecords, SummaryFiles, SwitchRecord}
import io.pyzorder.publish.relocate.{CatalogSwitch, PartitionLocationSwitch, TableLocationSwitch}
import io.pyzorder.storage.{FailPoints, FileRef, SiblingFolder, TableFolder}
import io.pyzorder.storage.metadata.MetadataNames

/**
 * The only active writer of a table. It holds the lock from `begin` until `abort` or a publishing
 * method ends the writer. The caller of `begin` must call `abort` or one of the publishing methods.
 * List the table's files only after `begin`, which may have to finish an earlier run first.
 *
 * If the writer is killed after one of these steps, a reader with the extension sees the following
 * (Overlay explains how):
 *  - PREPARE, staged files, markers, and index entries of files that do not exist yet: no change.
 *    Readers ignore all of these. The entries are published this early so that their statistics are
 *    not lost if the writer is killed after COMMIT. An entry applies only to a file that has the
 *    entry's name, size and modification time.
 *  - RETIRE: the old files, whether still in place or already retired, in every folder that still
 *    contains the run's marker.
 *  - COMMIT: the new files, whether still staged or already in place. By now, all old files are
 *    retired, except the late files (see RunFiles), which are hidden. The markers and the
 *    incarnation have been checked after the moves. From now on, the run can only be completed.
 *  - DONE: the files in a plain listing. The markers are deleted after DONE.
 *
 * The next writer undoes a run that was killed before COMMIT, and completes a run that was killed
 * after COMMIT.
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

  /** The layout of the files that this run publishes, recorded for the next OPTIMIZE. */
  var layout: Option[LayoutRecord] = None

  /**
   * All files of the table as this run found them. The index's coverage is derived from this list.
   */
  var listed: Option[ListedTable] = None

  /** Lists all files of the table. Called if this run has created the index; see ListedTable. */
  var listAgain: Option[() => ListedTable] = None

  /**
   * `before` is the index before this run's entries were published, and `indexed` is the index with
   * these entries.
   */
  private var before: Option[SnapshotRef] = None
  private var indexed: Option[SnapshotRef] = None

  /**
   * The files that the command reads. If the command fails and one of these files has changed, the
   * failure is reported as a conflict.
   */
  var reading: Seq[FileRef] = Nil

  /** The folder for new files. */
  def staging: Path = folder.staging(run)

  /** When this run began according to the store's clock, in milliseconds since the epoch. */
  def began: Long = {
    val path = MetadataNames.record(folder, run, "prepare")
    path.getFileSystem(hadoopConf).getFileStatus(path).getModificationTime
  }

  /** The path at which a new file is staged. The file will later be named `path`. */
  def stagedPath(path: String): Path = folder.stagedPath(run, path)

  /**
   * Throws unless the store has this many bytes free. Replaced files take up space until VACUUM
   * deletes them.
   */
  def checkSpace(bytes: Long): Unit = {
    val left = folder.root.getFileSystem(hadoopConf).getStatus(folder.root).getRemaining
    if (left < bytes) {
      files.checkFolders() // for a missing folder, local file systems report 0 bytes
      throw ZOrderErrors.tooLittleSpace(folder.root.toString, bytes, left)
    }
  }

  /** Throws if one of the folders, in the form of FileRef.folder, also belongs to another table. */
  def checkAlone(folders: Seq[String]): Unit =
    new RunFiles(hadoopConf, folder, run, RetireRecord(incarnation, Nil, Nil, folders)).checkAlone()

  /**
   * Replaces files in the table with staged files and ends this writer. Replaces all of the files,
   * or throws and replaces none. There are two exceptions, in which files may have been replaced
   * before this method throws. If another writer overwrites a folder in the meantime, the folder is
   * left as that writer wrote it. If a failure occurs after COMMIT, the next write command
   * completes the run.
   *
   * @param retire  the files that were read, with the properties that they had when they were read;
   *                SummaryFiles are retired with them
   * @param staged  the files that replace them and contain the same rows
   * @param entries the index entries of the staged files; this method sets their modification times
   * @param columns maps the previously indexed columns to the columns to index from now on
   * @param rowsOf  further files that are not retired, although the staged files also contain their
   *                rows
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
      files.checkNewNames()
      commit()
      committed = true
    } finally {
      if (!committed) abort()
    }
    complete()
  }

  /**
   * Publishes the run by switching the table's location to a folder that `fill` writes, and ends
   * this writer. Switches the location, or throws and changes nothing, with one exception. If a
   * failure occurs after COMMIT, this method throws, and the next write command completes the
   * switch.
   *
   * @param table the table in the session catalog, with its database
   * @param read  every file of the table, with the properties that it had when it was read
   * @param fill  publishes the table's rows in the new, empty folder that it is given
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
   * Publishes the run by switching the partitions' locations to folders that `fill` writes, and
   * ends this writer. Switches all of the partitions, or throws and switches none. There are two
   * exceptions, in which partitions may have been switched before this method throws. If another
   * writer overwrites a partition in the meantime, the partition is left as that writer wrote it.
   * If a failure occurs after COMMIT, the next write command completes the run.
   *
   * @param table the table in the session catalog, with its database
   * @param moves the partitions
   * @param read  every file of these partitions, with the properties that it had when it was read
   * @param fill  writes the rows to new files and describes these files. Its argument maps the old
   *              folders to the new folders, both in the form of FileRef.folder
   * @return the folder that contains the new folders
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
      files.retire(() => alive, _ => ()) // only summary files; data files are left in place
      commit()
      committed = true
    } finally {
      if (!committed) abort()
    }
    complete()
  }

  /**
   * The error to report for a failure before or during `publish`. The error is a conflict if other
   * writers have changed the table or the files that were being read, or if a file in the table was
   * temporarily missing. Otherwise, the error is the failure itself.
   */
  private[publish] def reason(failure: Throwable): Throwable = failure match {
    case told: ZOrderException => told
    case other =>
      val read = new RunFiles(hadoopConf, folder, run, RetireRecord(incarnation, reading, Nil, Nil))
      try {
        read.checkFolders()
        read.checkInputs()
        if (ZOrderErrors.isMissing(other, folder.root)) {
          throw ZOrderErrors.conflict(s"a file in $folder was temporarily missing")
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
          committing = false // the run is certainly not committed, so `abort` may free space first
          throw full
      }
    if (!isMine) throw declaredDead
  }

  private def declaredDead: Exception =
    ZOrderErrors.conflict("another write command declared this one dead and undid it")

  /**
   * Aborts the run without leaving a visible trace. Does nothing if this writer has already ended.
   */
  def abort(): Unit = if (!ended) {
    val interrupted = Thread.interrupted()
    try {
      if (files.sameIncarnation) {
        // Only this writer can commit the run. While `committing` is false, this writer has not
        // tried to commit it. On a full disk, deleting the staged files first frees space for the
        // records.
        if (!committing) files.removeStaged()
        // If the run cannot be aborted, a COMMIT whose outcome was unknown has succeeded after all.
        if (records.abort(incarnation, owner)) {
          moving.foreach(_.undo())
          Recovery.undo(session, files, _ => (), (now, _) => covered(now))
        } else {
          Recovery.complete(session, files, _ => ())(moving, () => lease.held, _ => ())
        }
        Recovery.close(records, files) // another writer that closed the run may have missed markers
      } else {
        moving.foreach(_.undo())
      }
    } catch {
      case NonFatal(failure) =>
        Writer.log.warn(s"Run $run of $folder could not be undone; the next write command on " +
            "the table will undo it", failure)
    } finally {
      end()
      if (interrupted) Thread.currentThread().interrupt()
    }
  }

  /**
   * True only if no other writer can have declared this writer dead: this writer holds its lease,
   * and the run has no outcome.
   */
  private def alive: Boolean = lease.held && !records.isDecided

  /**
   * Performs the steps before RETIRE: verifies row counts, creates markers and publishes index
   * entries. `summarized` lists the folders, in the form of FileRef.folder, whose SummaryFiles are
   * also retired.
   */
  private def prepareMoves(
      summarized: Seq[String],
      retire: Seq[FileRef],
      staged: Seq[StagedFile],
      entries: Seq[FileEntry],
      columns: Seq[IndexedColumn] => Seq[IndexedColumn],
      rowsOf: Seq[Path]): Unit = {
    files.checkFolders() // there are no folders yet, so this only checks the incarnation
    val added = staged.map { file =>
      require(file.stagedPath == stagedPath(file.path), s"${file.stagedPath} is not a staged path")
      val status = file.stagedPath.getFileSystem(hadoopConf).getFileStatus(file.stagedPath)
      require(status.getLen == file.size, s"${file.stagedPath} does not have ${file.size} bytes")
      FileRef(file.path, file.size, status.getModificationTime)
    }
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
        files.checkInputs() // if an input is missing, report that instead
        throw failure
    }
    reach("after-verify")
    files.mark()
    files = new RunFiles(hadoopConf, folder, run, files.marked)
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
    val published = IndexPublisher.publish(
      session, folder, columns,
      _.filterNot(e => times.contains(e.path) || listed.exists(_.gone(e.file))) ++ fresh,
      incarnation = Some(incarnation),
      coverage = (replaced, _) => {
        before = replaced
        None // until the run ends, some entries describe files that are not in the table
      },
      voids = true)
    indexed = Some(published)
  }

  /**
   * The index's coverage once the new files have replaced the old ones. It is derived from `listed`
   * if possible. Otherwise, it is the coverage before the run, if that is still valid.
   */
  private def coverage(ref: Option[SnapshotRef], entries: Seq[FileEntry]): Option[Coverage] = {
    val names = entries.iterator.map(_.path).toSet
    if (!SummaryFiles.without(files.record.add).forall(file => names(file.path))) None
    else {
      val retired = files.record.retire.toSet
      val stay = for (table <- listed if indexed.isDefined && table.holds(before))
        yield table.copy(since = indexed, files = table.files.filterNot(retired))
      val now = if (before.isEmpty && stay.isEmpty) listAgain.map(_()) else stay
      now.flatMap(Coverage.of(_, ref, entries)).orElse(covered(ref))
    }
  }

  /** The index's coverage before this run, if it is still valid. */
  private def covered(now: Option[SnapshotRef]): Option[Coverage] =
    before.flatMap(_.coverage).filter(_ =>
      now.forall(ref => indexed.exists(_.version == ref.coverableSince)))

  /**
   * The value of `listed` for the next run of the same command. It contains the files that this run
   * has not retired. None if `listed` is None, or if the index has no coverage.
   */
  def listedNext: Option[ListedTable] =
    for {
      table <- listed
      now <- IndexStore.latest(session.sessionState.newHadoopConf(), folder)
      if now.coverage.isDefined
      retired = files.record.retire.toSet
    } yield table.copy(since = Some(now), files = table.files.filterNot(retired))

  private def complete(): Unit =
    try {
      reach(if (moving.isEmpty) "after-commit" else "switch-committed")
      val problems =
        Recovery.complete(
          session, files, count => if (count == 1) reach("mid-move-in"), coverage)(
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

  /** Ends the run. A failure is harmless, because all readers see the new files in place by now. */
  private def close(): Unit =
    try Recovery.close(records, files)
    catch {
      case NonFatal(failure) =>
        Writer.log.warn(s"Run $run of $folder is complete, but its end could not be recorded; " +
            "the next write command on the table will record it", failure)
    }

  /**
   * Throws unless, according to the footers, the new files have as many rows in total as the files
   * that were read.
   */
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
        files.unmark() // includes markers put into a folder while it was being deleted
        records.clear(incarnation)
      }
      val elsewhere = files.record.add.exists(file => TableFolder.isWhole(file.path))
      if (lock.isFirst && files.sameIncarnation && !elsewhere)
        LeftoverCleanup.clearIfEmpty(hadoopConf, folder)
    } catch {
      case NonFatal(_) => () // the store is unavailable
    }
  }

  private def reach(point: String): Unit = FailPoints.reach(session.sessionState.conf, point)
}

/**
 * The new files of switched partitions.
 *
 * @param staged  the files
 * @param entries their index entries, without modification times
 * @param columns maps the previously indexed columns to the columns to index from now on
 */
final case class Filled(
    staged: Seq[StagedFile],
    entries: Seq[FileEntry],
    columns: Seq[IndexedColumn] => Seq[IndexedColumn])

object Writer {

  private val log = LoggerFactory.getLogger(classOf[Writer])

  /**
   * Runs `body`, which calls a publishing method of `writer`. Aborts the writer if `body` has not
   * ended it. If `body` fails, throws the result of `reason`.
   */
  def use[T](writer: Writer)(body: => T): T =
    try body
    catch { case NonFatal(failure) => throw writer.reason(failure) }
    finally writer.abort()

  /**
   * Takes the table's lock. If a dead writer left a run unfinished, finishes that run first.
   *
   * @param root      the table's folder
   * @param operation the command that needs the lock, such as OPTIMIZE, as shown to other writers
   */
  def begin(session: shim.SparkSession, root: Path, operation: String): Writer = {
    val fs = root.getFileSystem(session.sessionState.newHadoopConf())
    begin(session, new TableFolder(fs.makeQualified(root)), operation)
  }

  /** Like the overload with a path, but for a table that may be in the catalog. */
  def begin(session: shim.SparkSession, folder: TableFolder, operation: String): Writer = {
    val writer = new Writer(session, TableLock.take(session, folder, operation))
    writer.reach("after-prepare")
    writer
  }
}
