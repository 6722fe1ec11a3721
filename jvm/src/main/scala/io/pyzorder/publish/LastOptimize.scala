package io.pyzorder.publish

import org.apache.hadoop.conf.Configuration

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.publish.journal.{Journal, JournalState, RetireRecord, SummaryFiles, UndoneRuns}
import io.pyzorder.storage.{FileRef, FileSystems, TableFolder}

/**
 * The last OPTIMIZE that has not been undone yet and can still be undone.
 *
 * @param record the files that it replaced and the files that it wrote
 */
final case class LastOptimize(run: Long, record: RetireRecord)

object LastOptimize {

  /**
   * Finds the OPTIMIZE that a RESTORE would undo. Throws ZORDER_CANNOT_RESTORE if no OPTIMIZE is
   * left to undo, if other writers have replaced files that the OPTIMIZE wrote, if files that the
   * OPTIMIZE replaced are gone, or if a folder in its record no longer belongs to the table.
   */
  def find(
      hadoopConf: Configuration,
      folder: TableFolder,
      incarnation: Option[String]): LastOptimize = {
    val runs = runsOf(hadoopConf, folder, incarnation)
    val root = folder.root.toString
    val last = lastOf(runs).getOrElse {
      if (runs.exists(isCommitted)) throw ZOrderErrors.everyOptimizeUndone(root)
      throw ZOrderErrors.nothingToRestore(root)
    }
    val written = last.said.get
    written.named.find(!folder.holds(_)).foreach { gone =>
      throw ZOrderErrors.restorePartitionGone(root, gone)
    }
    // Files that a later RESTORE brought back are copies with new modification times. On some
    // stores, every file that a run has moved also has a new modification time.
    val since = runs.filter(_.run >= last.run).flatMap { run =>
      (if (isCommitted(run)) run.said.get.add else Nil) ++ run.placed
    }.map(file => file.path -> file).toMap
    val record = written.copy(add = written.add.map(file => since.getOrElse(file.path, file)))
    check(hadoopConf, folder, last.run, record)
    LastOptimize(last.run, record)
  }

  /**
   * The run number of the last OPTIMIZE that replaced files in place and has not been undone. None
   * if there is no such OPTIMIZE.
   */
  def number(
      hadoopConf: Configuration,
      folder: TableFolder,
      incarnation: Option[String]): Option[Long] =
    lastOf(runsOf(hadoopConf, folder, incarnation)).map(_.run)

  /** The runs that have recorded which files they replace. The caller's run has not done so yet. */
  private def runsOf(
      hadoopConf: Configuration,
      folder: TableFolder,
      incarnation: Option[String]): Seq[JournalState] =
    Journal.runs(hadoopConf, folder).sortBy(_.run).filter(
      _.said.exists(r =>
        incarnation.contains(r.incarnation) && SummaryFiles.without(r.retire).nonEmpty))

  private def lastOf(runs: Seq[JournalState]): Option[JournalState] = {
    val undone = UndoneRuns.of(runs)
    runs.filter(run =>
      isCommitted(run) && !UndoneRuns.isRestore(run) && !undone(run.run)).lastOption
  }

  private def check(
      hadoopConf: Configuration,
      folder: TableFolder,
      run: Long,
      record: RetireRecord): Unit = {
    record.add.foreach { file =>
      val path = folder.resolve(file.path)
      if (!isThere(hadoopConf, path, file)) {
        throw ZOrderErrors.restoreNewFileChanged(folder.root.toString, path.toString)
      }
    }
    record.retire.foreach { file =>
      val path = folder.retiredPath(run, file.path)
      if (!FileSystems.status(path.getFileSystem(hadoopConf), path)
          .exists(found => found.isFile && found.getLen == file.size)) {
        throw ZOrderErrors.restoreOldFileExpired(folder.root.toString, path.toString)
      }
    }
  }

  private def isThere(
      hadoopConf: Configuration,
      path: org.apache.hadoop.fs.Path,
      file: FileRef): Boolean =
    FileSystems.status(path.getFileSystem(hadoopConf), path).exists(status =>
      status.getLen == file.size && status.getModificationTime == file.modificationTime)

  private def isCommitted(run: JournalState): Boolean = run.outcome.exists(_.commit)
}
