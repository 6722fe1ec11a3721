package io.pyzorder.publish

import scala.util.control.NonFatal

import org.apache.spark.sql.pyzorder.shim
import org.slf4j.LoggerFactory

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.index.model.FileEntry
import io.pyzorder.index.store.IndexStore
import io.pyzorder.publish.journal.{JournalState, Marker, Records, RetireRecord, RunFiles}
import io.pyzorder.publish.journal.RunRecords
import io.pyzorder.publish.relocate.CatalogSwitch
import io.pyzorder.storage.{FailPoints, FileRef, Incarnation, TableFolder}

/**
 * Brings a run that was left unfinished to its end, by a writer that is about to take the lock.
 * Until COMMIT it is undone, after COMMIT it is completed. COMMIT and ABORT are one
 * create-if-absent object: the run's own writer, should it wake up, cannot commit what is being
 * undone here.
 */
private[publish] object Recovery {

  private val log = LoggerFactory.getLogger(getClass)

  /** Finishes the last run of the journal. */
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
    // Read now that it is decided: until then a writer that was declared dead may have gone on.
    val switch = CatalogSwitch.of(session, state.folder, state.run, records)
    switch.flatMap(_.strange).foreach { strange =>
      checkKnown(state, strange)
      log.warn(s"Run ${state.run} of ${state.folder} moves a partition out of $strange, where by " +
        "the catalog no partition of the table lies or lay: it is left alone")
    }
    val record = records.retired.map(ofTable(state, _, switch)).getOrElse(RetireRecord(
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
    problems.foreach(p => log.warn(s"Run ${state.run} of ${state.folder}: $p meanwhile"))
    reach("recovery-moved")
    close(records, files)
  }

  /**
   * What of a record is the table's: by the catalog, or by the mark of the run in a folder that it
   * fills. By the table's path alone this cannot be told of partitions that lie elsewhere.
   */
  private def ofTable(
      state: JournalState,
      said: RetireRecord,
      switch: Option[CatalogSwitch]): RetireRecord = {
    val folder = switch.fold(state.folder)(run => state.folder.trusting(run.marked))
    said.named.find(!folder.holds(_)).foreach { strange =>
      checkKnown(state, strange)
      log.warn(s"Run ${state.run} of ${state.folder} names files in $strange, where by the " +
        "catalog no partition of the table lies or lay: they are left alone")
    }
    said.within(folder)
  }

  /** An error where only the catalog, which was not asked, can tell whose a folder is. */
  private def checkKnown(state: JournalState, strange: String): Unit =
    if (!state.folder.isInCatalog && TableFolder.isWhole(strange)) {
      throw ZOrderErrors.unfinishedElsewhere(state.folder.root.toString, strange)
    }

  /**
   * After COMMIT: the new files go in, the last old one out, the index forgets the old ones; then
   * the catalog names the folders that are whole now.
   */
  def complete(session: shim.SparkSession, files: RunFiles, moved: Int => Unit)(
      switch: Option[CatalogSwitch],
      alive: () => Boolean,
      reach: String => Unit): Seq[String] = {
    val found = files.moveIn(moved)
    files.retireLast()
    reach("moved-in")
    end(session, files, gone = files.record.retire, back = files.record.add)
    val problems = (found ++ files.takeBack()).distinct
    if (problems.nonEmpty) switch.foreach(_.undo())
    problems ++ switch.filter(_ => problems.isEmpty).toSeq.flatMap(_.complete(alive, reach))
  }

  /** After ABORT: the old files go back, the index forgets the new ones. */
  def undo(session: shim.SparkSession, files: RunFiles, moved: Int => Unit): Seq[String] = {
    val problems = files.moveBack(moved)
    end(session, files, gone = files.record.add, back = files.record.retire)
    problems
  }

  /**
   * DONE, then what only an unfinished run needs is taken away; all of it in a folder that is just
   * being deleted, now or in a moment, which would stay for a record that came into it.
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
      back: Seq[FileRef]): Unit =
    if (files.sameIncarnation && (gone.nonEmpty || files.placed.nonEmpty)) {
      update(session, files, gone, back)
    }

  /**
   * Takes the entries of files that are gone out of the index, and gives those of files that have
   * another time now that time. Entries of files that are no more are of no harm (nothing has their
   * name), and a file whose time is not its entry's is read, so a failure here must not keep a run
   * from its end.
   */
  private def update(
      session: shim.SparkSession,
      files: RunFiles,
      gone: Seq[FileRef],
      back: Seq[FileRef]): Unit =
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
        IndexStore.publish(
          session, files.table, identity, _.filterNot(entry => names(entry.path)).map(now),
          life = Some(files.record.incarnation))
      }
    } catch {
      case NonFatal(failure) =>
        log.warn(s"The index of ${files.table} does not know where files were moved to", failure)
    }
}
