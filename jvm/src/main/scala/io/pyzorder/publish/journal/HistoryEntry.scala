package io.pyzorder.publish.journal

import org.apache.hadoop.conf.Configuration

import io.pyzorder.storage.{FileRef, FileSystems, TableFolder}

/**
 * One run of a table's journal, as people are told of it.
 *
 * @param operation what its writer was at work for, such as OPTIMIZE; empty: a torn record
 * @param began     milliseconds since the epoch, by the writer's clock; 0: a torn or forged record
 * @param ended     milliseconds since the epoch, by the store's clock; None: not finished
 * @param committed whether it replaced files
 * @param retired   the files it replaced, or was about to
 * @param added     the files it replaced them by
 * @param kept      number of the retired files that VACUUM has not deleted
 * @param keptBytes their size
 */
final case class HistoryEntry(
    run: Long,
    operation: String,
    began: Long,
    ended: Option[Long],
    committed: Boolean,
    retired: Seq[FileRef],
    added: Seq[FileRef],
    kept: Int,
    keptBytes: Long) {

  /** From begin to end; None: not finished, or a torn record. Two clocks may differ a little. */
  def seconds: Option[Double] =
    ended.filter(_ => began > 0).map(end => math.max(0L, end - began) / 1000.0)
}

object HistoryEntry {

  /** Every run of the table's journal, the first one first. */
  def all(hadoopConf: Configuration, folder: TableFolder): Seq[HistoryEntry] = {
    val ended = Journal.ended(hadoopConf, folder)
    Journal.runs(hadoopConf, folder).sortBy(_.run).map { state =>
      val retired = SummaryFiles.without(state.said.fold(Seq.empty[FileRef])(_.retire))
      val ours = SummaryFiles.without(state.retire.fold(Seq.empty[FileRef])(_.retire))
      val sizes = keptSizes(hadoopConf, folder, state.run, ours)
      HistoryEntry(
        state.run,
        state.prepare.fold("")(_.operation),
        state.prepare.map(_.began).filter(isTime).getOrElse(0L),
        ended.get(state.run).filter(isTime),
        state.outcome.exists(_.commit),
        retired,
        SummaryFiles.without(state.said.fold(Seq.empty[FileRef])(_.add)),
        sizes.length,
        sizes.sum)
    }
  }

  /** Until the year 9999: later ones overflow, or are none to Python. */
  private def isTime(millis: Long): Boolean = millis >= 0 && millis < 253402300800000L

  /** Bytes of each file that still lies where the run retired it to; one listing a folder. */
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
