package io.pyzorder.publish.journal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.pyzorder.storage.{FileRef, TableFolder}

/**
 * The correction that readers apply to a listing while a run is unfinished.
 *
 * Before COMMIT, and after ABORT, the table consists of the old files, wherever they are. After
 * COMMIT, it consists of the new files. Until COMMIT, an old file can only move from its own path
 * to its retired path. After ABORT, it can only move back. A new file can only move from its staged
 * path to its own path. A move never removes the old name before the new name exists. If a file
 * exists at all, a reader therefore finds it by looking at the file's own path (in a listing L),
 * then at the file's other path, and then at its own path again. This holds for both directions of
 * the move. If the journal's token is the same before and after these lookups, the direction did
 * not change.
 *
 * If a folder in the record no longer contains the run's marker, another writer has overwritten the
 * folder since RETIRE. In such a folder, the table consists of the files in L, minus the files that
 * the run itself moved in. None of the run's files are added, so overwritten rows never come back.
 * Readers check the markers both before and after they list a folder.
 */
final class Overlay private[publish] (
    val table: TableFolder,
    val run: Long,
    record: RetireRecord,
    commit: Boolean) {

  /**
   * The files that make up the table, including those that a listing misses because they have been
   * moved. Excludes files that listings never show: summary files, and files with hidden names in a
   * forged record.
   */
  val shown: Seq[FileRef] =
    (if (commit) record.add else record.retire).filterNot(file => TableFolder.isHidden(file.path))

  /**
   * The run's files that are not part of the table. A different file that is later created under
   * the same name may be part of the table.
   */
  val hidden: Set[FileRef] = (if (commit) record.retire else record.add).toSet

  /** The run's new files. If their folder was overwritten, they are hidden even after COMMIT. */
  private[publish] def added: Seq[FileRef] = record.add

  /** The folders in which the run created its marker, in the form of FileRef.folder. */
  def folders: Seq[String] = record.folders

  /** The other path at which a file in `shown` may be found. */
  def otherPlace(file: FileRef): Path =
    if (commit) table.stagedPath(run, file.path) else table.retiredPath(run, file.path)

  /** See Marker.isCopied. */
  def isCopied(hadoopConf: Configuration, folder: String): Boolean =
    Marker.isCopied(hadoopConf, table, run, record, folder)

  /** The folders among `folders` that no longer contain the run's marker. */
  def lost(hadoopConf: Configuration, folders: Seq[String]): Set[String] =
    folders.filterNot(Marker.present(hadoopConf, table, run, record.incarnation, _)).toSet
}
