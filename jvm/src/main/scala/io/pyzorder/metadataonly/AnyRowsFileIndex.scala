package io.pyzorder.metadataonly

import org.apache.hadoop.fs.FileStatus

import io.pyzorder.skipping.files.{ExaminedFile, PruningResult}

/**
 * Lists enough files for a query with LIMIT but without ORDER BY. Such a query may return any rows
 * that pass the filters. If the files whose rows all pass have at least `limit` rows in total, only
 * as many of these files as needed are opened. If these files have fewer rows, or if one of the
 * files to open has changed in the store, every file that may have a matching row is opened.
 */
final class AnyRowsFileIndex(scan: IndexedScan, limit: Int) extends PlanBoundFileIndex(scan) {

  override protected type Decision = PlanBoundFileIndex.Needed

  override protected def identity: Any = limit

  override protected def decide(): PlanBoundFileIndex.Needed = {
    val listed = examined(asked = false)
    enough(listed.flatMap(_.files)).filter(scan.index.areUnchanged) match {
      case Some(files) =>
        val paths = files.map(_.getPath).toSet
        new PlanBoundFileIndex.Needed(
          listed.map(p => p -> p.files.map(f => paths(f.file.fileStatus.getPath))))
      case None =>
        new PlanBoundFileIndex.Needed(
          examined().map(p => p -> p.files.map(_ => true)))
    }
  }

  /**
   * Of the files whose rows all pass, the first ones that together have at least `limit` rows. None
   * if all of these files together have fewer rows.
   */
  private def enough(files: Seq[ExaminedFile]): Option[Seq[FileStatus]] = {
    var rows = 0L
    val chosen = files.filter { file =>
      val counts = rows < limit && file.verdict == PruningResult.Selected &&
        file.known.exists(_.allRows)
      if (counts) rows += file.known.map(_.numRecords).sum
      counts
    }
    if (rows < limit) None else Some(chosen.map(_.file.fileStatus))
  }
}
