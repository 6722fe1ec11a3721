package io.pyzorder.publish.journal

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.index.store.IndexPublisher
import io.pyzorder.storage.{CreateIfAbsent, FileRef, FileSystems, MetadataFiles, TableFolder}
import io.pyzorder.storage.metadata.{MetadataNames, NewestMetadata}

/** Writes the records of one run. */
private[publish] final class RunRecords(
    hadoopConf: Configuration,
    folder: TableFolder,
    run: Long) {

  /** Takes the lock. Returns false if another writer was first. */
  def prepare(record: PrepareRecord): Boolean =
    create("prepare", Records.write(record))

  /**
   * Whether the folder is being deleted. This is the only case in which PREPARE disappears. Returns
   * false if there is a RETIRE without DONE, because the next writer can then finish the run.
   */
  def folderBeingDeleted: Boolean = !exists("prepare") && (exists("done") || !exists("retire"))

  /**
   * Whether DONE is the only record left. This happens if DONE is written while the folder is being
   * deleted. This method is called long after the run, and the folder may be renamed away and back
   * between two checks, so DONE must exist both before and after the other checks.
   */
  def onlyDoneLeft: Boolean =
    exists("done") && !exists("prepare") && !exists("retire") && exists("done")

  def retire(record: RetireRecord): Unit =
    if (!create("retire", Records.write(record))) throw taken("retire")

  def switch(record: SwitchRecord): Unit =
    if (!create("switch", Records.write(record))) throw taken("switch")

  def partitions(record: PartitionsRecord): Unit =
    if (!create("partitions", Records.write(record))) throw taken("partitions")

  /**
   * Commits the run. Returns false if another writer declared this writer dead and aborted the run.
   */
  def commit(incarnation: String, by: String): Boolean =
    create("outcome", Records.write(OutcomeRecord(incarnation, commit = true, by))) ||
      outcome.exists(o => o.commit && o.by == by)

  /** Aborts the run. Returns false if it was already committed. */
  def abort(incarnation: String, by: String): Boolean =
    create("outcome", Records.write(OutcomeRecord(incarnation, commit = false, by))) ||
      outcome.exists(!_.commit)

  /** The current RETIRE record; None if the record is missing or torn. */
  def retired: Option[RetireRecord] = existing("retire").flatMap(Records.retire)

  /** Whether the run's outcome has been decided, by its writer or by a writer that took over. */
  def isDecided: Boolean = exists("outcome")

  def done(incarnation: String, placed: Seq[FileRef]): Unit = {
    create("done", Records.writeDone(incarnation, placed))
    NewestMetadata.write(hadoopConf, folder)
  }

  /**
   * Cleans up after the table was overwritten, renamed or dropped during the run. Deletes the run's
   * records, the index of the given incarnation, and the folders that become empty. A run with the
   * same number in a new incarnation has records with the same names, so a record is deleted only
   * if its content names the given incarnation. Everything else is kept, because it may belong to a
   * new incarnation.
   */
  def clear(incarnation: String): Unit = {
    val fs = folder.journal.getFileSystem(hadoopConf)
    def attempt(act: => Unit): Unit =
      try act
      catch { case NonFatal(_) => () } // already gone, or a folder that is not empty
    FileSystems.list(fs, folder.journal).map(_.getPath).filter(_.getName.startsWith(s"_$run."))
      .foreach { record =>
        attempt {
          if (Records.incarnation(FileSystems.readFully(fs, record)).contains(incarnation)) {
            fs.delete(record, false)
          }
        }
      }
    attempt(IndexPublisher.removeOf(hadoopConf, folder, incarnation))
    Seq(folder.staging(run), folder.retired(run), folder.index, folder.journal)
      .foreach(place => attempt(MetadataFiles.removeEmpty(hadoopConf, place)))
    // A process that deletes the table may have failed to delete `_zorder` because of the records
    // in it, and may still be deleting the rest of the table's folder.
    if (FileSystems.exists(fs, folder.zorder)) {
      attempt(MetadataFiles.removeUnused(hadoopConf, folder.zorder))
    }
  }

  private def outcome: Option[OutcomeRecord] = existing("outcome").flatMap(Records.outcome)

  /** Creates a record. A torn record counts as missing and is replaced, unless it is a PREPARE. */
  private def create(kind: String, bytes: Array[Byte]): Boolean = {
    val path = MetadataNames.record(folder, run, kind)
    if (bytes.length > FileSystems.MaxBytes) throw ZOrderErrors.tooManyFiles(path.toString)
    val created = CreateIfAbsent.of(hadoopConf, path).create(path, bytes)
    if (!created && kind != "prepare" && existing(kind).exists(!Records.whole(_, kind))) {
      MetadataFiles.delete(hadoopConf, path)
      CreateIfAbsent.of(hadoopConf, path).create(path, bytes)
    } else {
      created
    }
  }

  private def exists(kind: String): Boolean = {
    val path = MetadataNames.record(folder, run, kind)
    FileSystems.exists(path.getFileSystem(hadoopConf), path)
  }

  private[publish] def existing(kind: String): Option[Array[Byte]] = {
    val path = MetadataNames.record(folder, run, kind)
    try Some(FileSystems.readFully(path.getFileSystem(hadoopConf), path))
    catch { case _: java.io.FileNotFoundException => None }
  }

  private def taken(kind: String): Exception =
    ZOrderErrors.conflict(s"record ${MetadataNames.record(folder, run, kind)} already exists")
}
