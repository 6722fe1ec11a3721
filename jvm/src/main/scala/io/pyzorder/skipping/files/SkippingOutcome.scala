package io.pyzorder.skipping.files

import org.apache.hadoop.fs.FileStatus

import io.pyzorder.skipping.predicate.{IndexFilter, JoinKeyFilter}

/**
 * What skipping did to one scan's files, after partition pruning.
 *
 * @param table         the table's name, or the folder's for a path
 * @param selected      files that are opened although the index knows them
 * @param skipped       files proved to hold no matching row
 * @param skippedByJoins those of the skipped that only the keys of joins prove to be of no use
 * @param unindexed     files that are opened because the index does not know them as they are now
 * @param selectedBytes size of the files that are opened
 * @param totalBytes    size of all
 * @param nanos         time the index took, without listing the files
 * @param filter        the filter over the index
 * @param joins         the part of the filter that joins gave
 * @param reasons       why the index, or part of the predicate, was of no use; empty: all was used
 * @param openedFiles   the files that are opened
 * @param answered      files that are not opened because the index answers for all of their rows
 */
final case class SkippingOutcome(
    table: String,
    selected: Int,
    skipped: Int,
    skippedByJoins: Int,
    unindexed: Int,
    selectedBytes: Long,
    totalBytes: Long,
    nanos: Long,
    filter: IndexFilter,
    joins: Seq[JoinKeyFilter],
    reasons: Seq[String],
    openedFiles: Seq[FileStatus],
    answered: Int = 0) {

  /** All files of the selected partitions. */
  def total: Int = selected + skipped + unindexed + answered

  /** Paths of the files that are opened. */
  def opened: Seq[String] = openedFiles.map(_.getPath.toString)

  /** As EXPLAIN shows it. */
  def summary: String =
    s"$table: $selected of $total files selected, $skipped skipped, " +
      s"$unindexed unindexed" +
      (if (answered == 0) "" else s", $answered answered from the index") +
      (byJoins ++ reasons).map("; " + _).mkString

  private def byJoins: Option[String] =
    if (joins.isEmpty) None
    else Some(s"$skippedByJoins skipped by join keys of ${joins.mkString(" and ")}")
}

object SkippingOutcome {

  /** Of a scan that reads all of its files, whatever an index may know of them. */
  def unserved(table: String, files: Int, bytes: Long, reason: String): SkippingOutcome =
    SkippingOutcome(
      table, selected = 0, skipped = 0, skippedByJoins = 0, unindexed = files,
      selectedBytes = bytes, totalBytes = bytes, nanos = 0L, IndexFilter.Always, joins = Nil,
      Seq(reason), openedFiles = Nil)
}
