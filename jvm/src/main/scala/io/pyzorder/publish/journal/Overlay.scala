package io.pyzorder.publish.journal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.pyzorder.storage.{FileRef, TableFolder}

/**
 * What a reader adds to and takes from a listing while a run is unfinished.
 *
 * Before COMMIT (and after ABORT) the OLD files are the table, wherever they lie; after it the NEW
 * ones are. Let L be a listing that saw one of them at its own place or not. Until COMMIT an old
 * file only moves from its own place to the retired one, after ABORT only back; a new file only
 * moves in. A move creates the second name before it removes the first. So whoever looks at the own
 * place (L), then at the other, then at the own place again finds the file if it exists at all, in
 * each direction; and the journal's token, equal before and after, proves the direction did not
 * change.
 *
 * A folder that lost its marker was overwritten by someone else since RETIRE: there the table is
 * what L shows, less what the run itself moved in; nothing of the run's is added (G4: overwritten
 * rows never come back). The markers too are looked at before and after.
 */
final class Overlay private[publish] (
    val table: TableFolder,
    val run: Long,
    record: RetireRecord,
    commit: Boolean) {

  /**
   * The files that are the table, whether a listing shows them or not. None that no listing shows:
   * SummaryFiles, and whatever a forged record names.
   */
  val shown: Seq[FileRef] =
    (if (commit) record.add else record.retire).filterNot(file => Marker.isHidden(file.path))

  /** The files that are not, unless their name holds another file by now. */
  val hidden: Set[FileRef] = (if (commit) record.retire else record.add).toSet

  /** The run's new files, hidden too where their folder was overwritten. */
  private[publish] def added: Seq[FileRef] = record.add

  /** Folders that carry the run's marker, named as in FileRef.folder. */
  def folders: Seq[String] = record.folders

  /** The other place a shown file may lie at. */
  def otherPlace(file: FileRef): Path =
    if (commit) table.stagedPath(run, file.path) else table.retiredPath(run, file.path)

  /** Which of `folders` have lost their marker. */
  def lost(hadoopConf: Configuration, folders: Seq[String]): Set[String] =
    folders.filterNot(Marker.present(hadoopConf, table, run, record.incarnation, _)).toSet
}
