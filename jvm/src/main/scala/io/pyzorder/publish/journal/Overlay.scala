package io.pyzorder.publish.journal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.pyzorder.storage.{FileRef, TableFolder}

/**
 * The correction that readers apply to a listing while a run is unfinished.
 *
 * Before COMMIT, and after ABORT, the old files make up the table, wherever they are; after COMMIT
 * the new files do. Until COMMIT an old file moves only from its own place to its retired place,
 * and after ABORT only back; a new file moves only from its staged place to its own place. A move
 * never removes the old name before the new one exists. A reader that looks at a file's own place
 * (in a listing L), then at the other place, then at its own place again therefore finds the file
 * if it exists at all, whichever way it moves. The journal's token, equal before and after, proves
 * that the direction did not change.
 *
 * A folder without its marker has been overwritten by another writer since RETIRE. There, the table
 * consists of the files in L, minus those that the run itself moved in, and none of the run's files
 * are added (overwritten rows never come back). The markers are also checked before and after.
 */
final class Overlay private[publish] (
    val table: TableFolder,
    val run: Long,
    record: RetireRecord,
    commit: Boolean) {

  /**
   * The files that make up the table, whether or not a listing shows them. Files that listings
   * always hide are left out: SummaryFiles, and any hidden names in a forged record.
   */
  val shown: Seq[FileRef] =
    (if (commit) record.add else record.retire).filterNot(file => TableFolder.isHidden(file.path))

  /**
   * The run's files that are not part of the table. A different file that later has the same name
   * may be part of the table.
   */
  val hidden: Set[FileRef] = (if (commit) record.retire else record.add).toSet

  /** The run's new files, which are hidden as well if their folder was overwritten. */
  private[publish] def added: Seq[FileRef] = record.add

  /** Folders that carry the run's marker, named as in FileRef.folder. */
  def folders: Seq[String] = record.folders

  /** The other place where a shown file may be. */
  def otherPlace(file: FileRef): Path =
    if (commit) table.stagedPath(run, file.path) else table.retiredPath(run, file.path)

  /** The given folders that have lost their marker. */
  def lost(hadoopConf: Configuration, folders: Seq[String]): Set[String] =
    folders.filterNot(Marker.present(hadoopConf, table, run, record.incarnation, _)).toSet
}
