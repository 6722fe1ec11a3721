package io.pyzorder.publish

import scala.util.control.NonFatal

import org.apache.spark.sql.pyzorder.shim
import org.slf4j.LoggerFactory

import io.pyzorder.index.{FileEntry, IndexStore}

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
    val commit = state.outcome.map(_.commit).getOrElse {
      !records.abort(incarnation, "recovery")
    }
    log.warn(s"Run ${state.run} of ${state.folder} was left unfinished; " +
      (if (commit) "completing it" else "undoing it"))
    def reach(point: String): Unit = FailPoints.reach(session.sessionState.conf, point)
    reach("recovery-decided")
    val record = state.retire.getOrElse(RetireRecord(
        incarnation, Nil, Nil, Marker.left(conf, state.folder, state.run, incarnation)))
    val files = new RunFiles(conf, state.folder, state.run, record)
    val problems =
      if (commit) complete(session, files, n => if (n == 1) reach("recovery-completing"))
      else undo(session, files, n => if (n == 1) reach("recovery-undoing"))
    problems.foreach(p => log.warn(s"Run ${state.run} of ${state.folder}: $p meanwhile"))
    reach("recovery-moved")
    close(records, files)
  }

  /** After COMMIT: the new files go in, the last old one out, the index forgets the old ones. */
  def complete(session: shim.SparkSession, files: RunFiles, moved: Int => Unit): Seq[String] = {
    val problems = files.moveIn(moved)
    files.retireLast()
    if (files.sameLife) forget(session, files, files.record.retire)
    problems
  }

  /** After ABORT: the old files go back, the index forgets the new ones. */
  def undo(session: shim.SparkSession, files: RunFiles, moved: Int => Unit): Seq[String] = {
    val problems = files.moveBack(moved)
    if (files.sameLife && files.record.add.nonEmpty) forget(session, files, files.record.add)
    problems
  }

  /** DONE, then what only an unfinished run needs is taken away. */
  def close(records: RunRecords, files: RunFiles): Unit = {
    if (files.sameLife) {
      files.removeStaged()
      records.done(files.record.incarnation)
    }
    files.unmark()
  }

  /**
   * Entries of files that are no more are of no harm (nothing has their name), so a failure here
   * must not keep a run from its end.
   */
  private def forget(session: shim.SparkSession, files: RunFiles, gone: Seq[FileRef]): Unit =
    try {
      val conf = session.sessionState.newHadoopConf()
      val names = gone.map(_.path).toSet
      if (names.nonEmpty && IndexStore.latest(conf, files.table).isDefined) {
        val change: Seq[FileEntry] => Seq[FileEntry] = _.filterNot(e => names(e.path))
        IndexStore.publish(session, files.table, identity, change)
      }
    } catch {
      case NonFatal(failure) =>
        log.warn(s"Entries of files that are gone stay in the index of ${files.table}", failure)
    }
}
