package io.pyzorder.publish.journal

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.index.store.IndexStore
import io.pyzorder.storage.{CreateIfAbsent, FileRef, FileSystems, MetadataFiles, TableFolder}

/** Writes the records of one run. */
private[publish] final class RunRecords(
    hadoopConf: Configuration,
    folder: TableFolder,
    run: Long) {

  /** Takes the lock; false: another writer was first. */
  def prepare(record: PrepareRecord): Boolean =
    create("prepare", Records.write(record))

  /**
   * Whether the folder is just being deleted: nothing else takes PREPARE away. Not where a RETIRE
   * without DONE tells the next writer what to bring to its end.
   */
  def folderBeingDeleted: Boolean = !exists("prepare") && (exists("done") || !exists("retire"))

  /**
   * Whether DONE is all that is left: the folder was deleted as it came. Asked for long after the
   * run, when the folder may just be renamed and renamed back: DONE has to be there first and last.
   */
  def onlyDoneLeft: Boolean =
    exists("done") && !exists("prepare") && !exists("retire") && exists("done")

  def retire(record: RetireRecord): Unit =
    if (!create("retire", Records.write(record))) throw taken("retire")

  def switch(record: SwitchRecord): Unit =
    if (!create("switch", Records.write(record))) throw taken("switch")

  def partitions(record: PartitionsRecord): Unit =
    if (!create("partitions", Records.write(record))) throw taken("partitions")

  /** Whether the run is committed now: false says that someone declared its writer dead. */
  def commit(incarnation: String, by: String): Boolean =
    create("outcome", Records.write(OutcomeRecord(incarnation, commit = true, by))) ||
      outcome.exists(o => o.commit && o.by == by)

  /** Whether the run is aborted now: false says that it was committed before. */
  def abort(incarnation: String, by: String): Boolean =
    create("outcome", Records.write(OutcomeRecord(incarnation, commit = false, by))) ||
      outcome.exists(!_.commit)

  /** What the run replaces by what, as it is now; None: no record says so. */
  def retired: Option[RetireRecord] = existing("retire").flatMap(Records.retire)

  /** Whether the run was committed or aborted, by its writer or by one who declared that dead. */
  def isDecided: Boolean = exists("outcome")

  def done(incarnation: String, placed: Seq[FileRef]): Unit =
    create("done", Records.writeDone(incarnation, placed))

  /**
   * Takes away the run's records where its folder is no table any more, the index of that life of
   * the table, and folders that are empty then. A run of the same number in a new life has records
   * of the same names: what they say tells whose they are. Nothing else goes: it may be of a new
   * life.
   */
  def clear(incarnation: String): Unit = {
    val fs = folder.journal.getFileSystem(hadoopConf)
    def attempt(act: => Unit): Unit =
      try act
      catch { case NonFatal(_) => () } // it is gone, or a folder that holds something
    FileSystems.list(fs, folder.journal).map(_.getPath).filter(_.getName.startsWith(s"_$run."))
      .foreach { record =>
        attempt {
          if (Records.incarnation(FileSystems.readFully(fs, record)).contains(incarnation)) {
            fs.delete(record, false)
          }
        }
      }
    attempt(IndexStore.removeOf(hadoopConf, folder, incarnation))
    Seq(folder.staging(run), folder.retired(run), folder.index, folder.journal)
      .foreach(place => attempt(MetadataFiles.removeEmpty(hadoopConf, place)))
    // Who deletes the table may have given up at what was here, and yet take the rest away.
    if (FileSystems.exists(fs, folder.zorder)) {
      attempt(MetadataFiles.removeUnused(hadoopConf, folder.zorder))
    }
  }

  private def outcome: Option[OutcomeRecord] = existing("outcome").flatMap(Records.outcome)

  /** A torn record is no record: it is taken away and its place is free again. */
  private def create(kind: String, bytes: Array[Byte]): Boolean = {
    val path = Journal.path(folder, run, kind)
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
    val path = Journal.path(folder, run, kind)
    FileSystems.exists(path.getFileSystem(hadoopConf), path)
  }

  private[publish] def existing(kind: String): Option[Array[Byte]] = {
    val path = Journal.path(folder, run, kind)
    try Some(FileSystems.readFully(path.getFileSystem(hadoopConf), path))
    catch { case _: java.io.FileNotFoundException => None }
  }

  private def taken(kind: String): Exception =
    ZOrderErrors.conflict(s"record ${Journal.path(folder, run, kind)} exists already")
}
