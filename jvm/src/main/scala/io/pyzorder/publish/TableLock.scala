package io.pyzorder.publish

import java.util.UUID

import scala.util.control.NonFatal

import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.{ZOrderConf, ZOrderErrors, ZOrderException}
import io.pyzorder.publish.journal.{Journal, JournalState, Lease, PrepareRecord, RunFiles}
import io.pyzorder.publish.journal.RunRecords
import io.pyzorder.publish.relocate.TableLocationSwitch
import io.pyzorder.storage.{CreateIfAbsent, FileSystems, Incarnation, MetadataFiles, ProcessId}
import io.pyzorder.storage.{RunNumber, TableFolder}

/**
 * A table's exclusive lock, which is the PREPARE record of an unfinished run. A lease keeps the
 * lock alive and is renewed until `lease.end()` is called.
 *
 * @param run         the run of the PREPARE record
 * @param incarnation the table's incarnation when the writer took the lock
 * @param owner       identifies the writer among all writers that have ever prepared a run with
 *                    this number
 * @param isFirst     whether this writer created the incarnation. The first writer of a table
 *                    creates an incarnation, and so does a writer that starts while the table's
 *                    folder is being deleted
 */
private[publish] final case class TableLock(
    folder: TableFolder,
    run: Long,
    incarnation: String,
    owner: String,
    lease: Lease,
    isFirst: Boolean)

private[publish] object TableLock {

  /**
   * Takes the lock. If a dead writer left a run unfinished, finishes that run first.
   *
   * @param folder    the table's folder
   * @param operation the command that needs the lock, as shown to other writers
   */
  def take(session: shim.SparkSession, folder: TableFolder, operation: String): TableLock = {
    val conf = session.sessionState.newHadoopConf()
    val root = folder.root
    CreateIfAbsent.of(conf, folder.journal)
    try {
      Iterator.continually(tryTake(session, folder, operation)).flatten.next()
    } catch {
      case known: ZOrderException => throw known
      case NonFatal(gone) if ZOrderErrors.isMissing(gone) =>
        val error =
          if (FileSystems.exists(folder.root.getFileSystem(conf), folder.root)) {
            ZOrderErrors.conflict(s"$root was overwritten, renamed or dropped")
          } else ZOrderErrors.noFolder(root.toString)
        throw ZOrderErrors.because(gone, error)
    }
  }

  /**
   * Makes one attempt to take the lock. Returns None if another writer was faster or the table was
   * just overwritten.
   */
  private def tryTake(
      session: shim.SparkSession,
      folder: TableFolder,
      operation: String): Option[TableLock] = {
    val conf = session.sessionState.newHadoopConf()
    val length = ZOrderConf.journalLease.get(session.sessionState.conf)
    val isFirst = Incarnation.read(conf, folder).isEmpty
    val incarnation = Incarnation.readOrCreate(conf, folder)
    val state = Journal.read(conf, folder)
    if (state.unfinished) takeOver(session, state, length)
    else state.retire.foreach(new RunFiles(conf, folder, state.run, _).unmark())
    val finished = if (state.unfinished) Journal.read(conf, folder) else state
    TableLocationSwitch.done(session, finished).foreach(switch =>
      throw ZOrderErrors.tableMoved(folder.root.toString, switch.to.root.toString))
    val record = PrepareRecord(
      incarnation, operation, UUID.randomUUID().toString, ProcessId.current,
      System.currentTimeMillis(), length)
    if (state.run == RunNumber.Greatest) throw ZOrderErrors.usedUpNumbers(folder.journal.toString)
    val run = state.run + 1
    // The run needs these folders to move files after its commit, so nothing else may have their
    // names.
    val fs = folder.zorder.getFileSystem(conf)
    Seq(folder.staging(run), folder.retired(run)).flatMap(path => Seq(path.getParent, path))
      .foreach(MetadataFiles.existsAsFolder(fs, _))
    MetadataFiles.makeFolder(conf,
      folder.journal) // missing for the first run of an incarnation
    val lease = new Lease(conf, folder, run, record.owner, length)
    lease.claim()
    if (new RunRecords(conf, folder, run).prepare(record) &&
      Incarnation.read(conf, folder).contains(incarnation)) {
      lease.start()
      Some(TableLock(folder, run, incarnation, record.owner, lease, isFirst))
    } else {
      lease.end()
      None
    }
  }

  /** Finishes the run of a dead writer. Throws if the writer may still be alive. */
  private def takeOver(session: shim.SparkSession, state: JournalState, length: Long): Unit = {
    val declaredDead =
      ZOrderConf.journalTakeOver.get(session.sessionState.conf) == state.run.toString
    val conf = session.sessionState.newHadoopConf()
    if (!declaredDead && Lease.isAlive(conf, state, length)) {
      val owner = state.prepare
      throw ZOrderErrors.concurrentOptimize(
        owner.map(p => s"${p.operation} by ${p.process.describe}").getOrElse("an unknown writer"),
        owner.map(p => java.time.Instant.ofEpochMilli(p.began).toString)
          .getOrElse("an unknown time"),
        owner.map(_.lease).getOrElse(length),
        state.run)
    }
    Recovery.finish(session, state)
  }
}
