package io.pyzorder.publish

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.pyzorder.shim
import org.slf4j.LoggerFactory

import io.pyzorder.common.{Printable, ZOrderErrors}
import io.pyzorder.index.model.FileEntry
import io.pyzorder.index.store.{Coverage, IndexPublisher, IndexStore, SnapshotRef}
import io.pyzorder.publish.journal.{JournalState, Marker, Records, RetireRecord, RunFiles}
import io.pyzorder.publish.journal.RunRecords
import io.pyzorder.publish.relocate.CatalogSwitch
import io.pyzorder.storage.{FailPoints, FileRef, Incarnation, TableFolder}
import io.pyzorder.storage.metadata.MetadataNames

/**
 * Finishes an unfinished run on behalf of a writer that is about to take the lock. The run is
 * completed if there is a COMMIT, and undone otherwise. COMMIT and ABORT are written to the same
 * file, which is created only if it is absent. If the run's own writer wakes up, it therefore
 * cannot commit the run that is being undone here.
 */
private[publish] object Recovery {

  private val log = LoggerFactory.getLogger(getClass)

  /** Finishes the last run in the journal. */
  def finish(session: shim.SparkSession, state: JournalState): Unit = {
    val conf = session.sessionState.newHadoopConf()
    val records = new RunRecords(conf, state.folder, state.run)
    val incarnation = Incarnation.readOrCreate(conf, state.folder)
    def reach(point: String): Unit = FailPoints.reach(session.sessionState.conf, point)
    reach("recovery-begun")
    val commit = state.outcome.map(_.commit).getOrElse {
      !records.abort(incarnation, "recovery")
    }
    log.warn(s"Run ${state.run} of ${state.folder} was left unfinished; " +
      (if (commit) "completing it" else "undoing it"))
    reach("recovery-decided")
    // The record is read only after the outcome has been decided. Until then, a writer that was
    // declared dead could still add records.
    val switch = CatalogSwitch.of(session, state.folder, state.run, records)
    switch.flatMap(_.strange).foreach { strange =>
      checkKnown(state, strange)
      log.warn(s"Run ${state.run} of ${state.folder} moves a partition out of " +
        s"${Printable(strange)}, which the catalog does not show as a past or present partition " +
        "location; that partition is left alone")
    }
    val record = records.retired.map(ofTable(conf, state, _, switch)).getOrElse(RetireRecord(
        incarnation, Nil, Nil, Marker.left(conf, state.folder, state.run, incarnation)))
    val newNames = state.prepare.exists(_.operation != Records.Restore)
    val files = new RunFiles(
      conf, state.folder, state.run, record, newNames, recovered = true)
    val problems =
      if (commit) {
        complete(session, files, n => if (n == 1) reach("recovery-completing"))(
          switch, () => true, reach)
      } else {
        switch.foreach(_.undo())
        undo(session, files, n => if (n == 1) reach("recovery-undoing"))
      }
    problems.foreach(p =>
      log.warn(s"Conflict while finishing run ${state.run} of ${state.folder}: ${Printable(p)}"))
    reach("recovery-moved")
    close(records, files)
  }

  /**
   * The part of a record that belongs to the table. Whether a folder belongs to the table is
   * determined by the catalog, or by the mark that the run put into each folder that it fills. For
   * partitions outside the table's folder, the table's path alone does not show whether they belong
   * to the table.
   */
  private def ofTable(
      conf: Configuration,
      state: JournalState,
      said: RetireRecord,
      switch: Option[CatalogSwitch]): RetireRecord = {
    val folder = switch.fold(state.folder)(run => state.folder.trusting(run.marked))
    said.named.find(!folder.holds(_)).foreach { strange =>
      checkKnown(state, strange)
      checkStore(state, strange)
      if (isMarked(conf, state, said, strange)) {
        throw ZOrderErrors.unfinishedWithoutPartition(state.folder.root.toString, strange)
      }
      log.warn(s"Run ${state.run} of ${state.folder} names files in ${Printable(strange)}, which " +
        "the catalog does not show as a past or present partition location; these files are " +
        "left alone")
    }
    said.within(folder)
  }

  /**
   * Throws if only the catalog can show whether the folder `strange` belongs to the table, but the
   * table was named by its path.
   */
  private def checkKnown(state: JournalState, strange: String): Unit =
    if (!state.folder.isInCatalog && TableFolder.isWhole(strange)) {
      throw ZOrderErrors.unfinishedElsewhere(state.folder.root.toString, strange)
    }

  /**
   * Throws if the folder `strange` is on another store than the table. If the record is forged, its
   * author has chosen this store, so no request may be sent there. If the record is genuine, the
   * partition there has been dropped, and may contain files that were not put back.
   */
  private def checkStore(state: JournalState, strange: String): Unit =
    if (TableFolder.isWhole(strange) && !TableFolder.leaves(strange) &&
      !state.folder.isOnSameStore(strange)) {
      throw ZOrderErrors.unfinishedOnOtherStore(
        state.folder.root.toString, Printable(strange),
        MetadataNames.record(state.folder, state.run, "retire").toString)
    }

  /**
   * Whether a folder outside the table's folder contains the run's marker. If it does, the run may
   * have moved files in this folder. If the run were ended while these files were not in place,
   * their rows would be lost. The folder may be a partition of another table in the same location,
   * or a partition of this table that has been dropped since.
   */
  private def isMarked(
      conf: Configuration,
      state: JournalState,
      said: RetireRecord,
      folder: String): Boolean =
    TableFolder.isWhole(folder) && !TableFolder.leaves(folder) &&
      Marker.present(conf, state.folder, state.run, said.incarnation, folder)

  /**
   * Completes a committed run: moves the new files into place, retires the old files that have not
   * been retired yet, and removes the entries of old files from the index. If the run switches
   * locations, the switch in the catalog is the last step.
   *
   * @param coverage computes the index's coverage after the run from the previous snapshot and the
   *                 new entries
   */
  def complete(
      session: shim.SparkSession,
      files: RunFiles,
      moved: Int => Unit,
      coverage: (Option[SnapshotRef], Seq[FileEntry]) => Option[Coverage] = (_, _) => None)(
      switch: Option[CatalogSwitch],
      alive: () => Boolean,
      reach: String => Unit): Seq[String] = {
    val found = files.moveIn(moved)
    files.retireLast()
    reach("moved-in")
    end(session, files, gone = files.record.retire, back = files.record.add, coverage)
    val problems = (found ++ files.takeBack()).distinct
    if (problems.nonEmpty) switch.foreach(_.undo())
    problems ++ switch.filter(_ => problems.isEmpty).toSeq.flatMap(_.complete(alive, reach))
  }

  /**
   * Undoes an aborted run: moves the old files back and removes the entries of the new files from
   * the index.
   */
  def undo(
      session: shim.SparkSession,
      files: RunFiles,
      moved: Int => Unit,
      coverage: (Option[SnapshotRef], Seq[FileEntry]) => Option[Coverage] = (_, _) => None)
      : Seq[String] = {
    val problems = files.moveBack(moved)
    end(session, files, gone = files.record.add, back = files.record.retire, coverage)
    problems
  }

  /**
   * Writes DONE and deletes the files that only an unfinished run needs. If it turns out, now or
   * shortly afterwards, that the table's folder is being deleted, also deletes the run's records,
   * because a record written in the meantime would keep the folder from being deleted.
   */
  def close(records: RunRecords, files: RunFiles): Unit = {
    if (files.sameIncarnation) {
      files.removeStaged()
      records.done(files.record.incarnation, files.placed)
    }
    files.unmark()
    if (!files.sameIncarnation || records.folderBeingDeleted)
      records.clear(files.record.incarnation)
    LeftoverCleanup.lookLater(() =>
      if (records.onlyDoneLeft) records.clear(files.record.incarnation))
  }

  private def end(
      session: shim.SparkSession,
      files: RunFiles,
      gone: Seq[FileRef],
      back: Seq[FileRef],
      coverage: (Option[SnapshotRef], Seq[FileEntry]) => Option[Coverage]): Unit =
    if (files.sameIncarnation && (gone.nonEmpty || back.nonEmpty)) {
      update(session, files, gone, back, coverage)
    }

  /**
   * Removes from the index the entries of files that are gone. If a file received a new
   * modification time when it was moved, updates the time in the file's entry. A failure must not
   * prevent the run from ending. Queries remain correct after a failure: an entry whose file is
   * gone does not match any other file, and a file whose modification time differs from the one in
   * its entry is never skipped.
   */
  private def update(
      session: shim.SparkSession,
      files: RunFiles,
      gone: Seq[FileRef],
      back: Seq[FileRef],
      coverage: (Option[SnapshotRef], Seq[FileEntry]) => Option[Coverage]): Unit =
    try {
      val names = gone.map(_.path).toSet
      val recorded = back.toSet
      val times = files.placed.map(file => file.path -> file.modificationTime).toMap
      def now(entry: FileEntry): FileEntry = times.get(entry.path) match {
        case Some(time) if recorded(FileRef(entry.path, entry.size, entry.modificationTime)) =>
          entry.copy(modificationTime = time)
        case _ => entry
      }
      if (IndexStore.latest(session.sessionState.newHadoopConf(), files.table).isDefined) {
        IndexPublisher.publish(
          session, files.table, identity, _.filterNot(entry => names(entry.path)).map(now),
          incarnation = Some(files.record.incarnation),
          coverage = coverage,
          voids = true)
      }
    } catch {
      case NonFatal(failure) =>
        log.warn(
          s"The index of ${files.table} could not be updated; files that no longer match their " +
            "entries are not skipped",
          failure)
    }
}
