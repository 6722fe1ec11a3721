package io.pyzorder.publish.journal

import org.apache.hadoop.conf.Configuration

import io.pyzorder.common.RecordedTime
import io.pyzorder.storage.{FileRef, FileSystems, TableFolder}

/**
 * One run in a table's journal, as reported to users.
 *
 * @param operation the command, such as OPTIMIZE; empty if the PREPARE record is torn
 * @param began     when the run began according to the writer's clock, in milliseconds since the
 *                  epoch; 0 if the PREPARE record is torn or its time is not valid
 * @param ended     when the run ended according to the store's clock, in milliseconds since the
 *                  epoch; None if the run is unfinished
 * @param committed whether the run replaced files
 * @param undone    whether a later RESTORE has undone the run
 * @param retired   the files that the run replaced, or was about to replace
 * @param added     the files that replaced them
 * @param kept      the number of retired files that VACUUM has not deleted yet
 * @param keptBytes the total size of those files
 */
final case class HistoryEntry(
    run: Long,
    operation: String,
    began: Long,
    ended: Option[Long],
    committed: Boolean,
    undone: Boolean,
    retired: Seq[FileRef],
    added: Seq[FileRef],
    kept: Int,
    keptBytes: Long) {

  /**
   * The duration, which clock skew may distort; None if the run is unfinished or its record is
   * torn.
   */
  def seconds: Option[Double] =
    ended.filter(_ => began > 0).map(end => math.max(0L, end - began) / 1000.0)
}

object HistoryEntry {

  /** All runs in the table's journal, in ascending order. */
  def all(hadoopConf: Configuration, folder: TableFolder): Seq[HistoryEntry] = {
    val ended = Journal.ended(hadoopConf, folder)
    val runs = Journal.runs(hadoopConf, folder).sortBy(_.run)
    val undone = UndoneRuns.of(runs)
    runs.map { state =>
      val retired = SummaryFiles.without(state.said.fold(Seq.empty[FileRef])(_.retire))
      val ours = SummaryFiles.without(state.retire.fold(Seq.empty[FileRef])(_.retire))
      val sizes = keptSizes(hadoopConf, folder, state.run, ours)
      HistoryEntry(
        state.run,
        state.prepare.fold("")(_.operation),
        state.prepare.map(_.began).filter(RecordedTime.isValid).getOrElse(0L),
        ended.get(state.run).filter(RecordedTime.isValid),
        state.outcome.exists(_.commit),
        undone(state.run),
        retired,
        SummaryFiles.without(state.said.fold(Seq.empty[FileRef])(_.add)),
        sizes.length,
        sizes.sum)
    }
  }

  /** The sizes of the files that are still at their retired paths. Lists each folder once. */
  private def keptSizes(
      hadoopConf: Configuration,
      folder: TableFolder,
      run: Long,
      retired: Seq[FileRef]): Seq[Long] = {
    val places = retired.map(file => folder.retiredPath(run, file.path))
    val names = places.map(place => (place.getParent, place.getName)).toSet
    places.map(_.getParent).distinct.flatMap { parent =>
      FileSystems.list(parent.getFileSystem(hadoopConf), parent)
        .filter(status => names((parent, status.getPath.getName))).map(_.getLen)
    }
  }
}
