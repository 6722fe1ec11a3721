package io.pyzorder.skipping.files

import java.time.Instant

import org.apache.hadoop.fs.FileStatus

import io.pyzorder.skipping.predicate.{IndexFilter, JoinKeyFilter}

/**
 * The effect of skipping on one scan's files, after partition pruning.
 *
 * @param table          the table's name, or the folder's name if the table is read by path
 * @param selected       the number of indexed files that are opened. If there is an index but it
 *                       was not evaluated, this is the number of all opened files
 * @param skipped        the number of files that provably contain no matching row
 * @param skippedByJoins the number of skipped files that would be opened without join keys
 * @param skippedBySketches the number of skipped files that would be opened without sketches
 * @param unindexed      the number of files that are opened because the index has no valid entry
 *                       for them
 * @param selectedBytes  the total size of the files that are opened
 * @param totalBytes     the total size of all files
 * @param nanos          the time spent on the index, excluding the listing of the files
 * @param filter         the filter over the index
 * @param joins          the part of the filter that is derived from join keys
 * @param reasons        why the index or parts of the predicate were not used; empty if everything
 *                       was used
 * @param openedFiles    the files that are opened
 * @param answered       the number of files that are not opened because the index contains the
 *                       aggregates of all their rows
 * @param asOf           when the files were last verified, in milliseconds since the epoch; None if
 *                       just now, or if Spark's own index lists them
 */
final case class SkippingOutcome(
    table: String,
    selected: Int,
    skipped: Int,
    skippedByJoins: Int,
    skippedBySketches: Int,
    unindexed: Int,
    selectedBytes: Long,
    totalBytes: Long,
    nanos: Long,
    filter: IndexFilter,
    joins: Seq[JoinKeyFilter],
    reasons: Seq[String],
    openedFiles: Seq[FileStatus],
    answered: Int = 0,
    asOf: Option[Long] = None) {

  /** The number of files in the selected partitions. */
  def total: Int = selected + skipped + unindexed + answered

  /** The paths of the files that are opened. */
  def opened: Seq[String] = openedFiles.map(_.getPath.toString)

  /** The outcome as EXPLAIN shows it. */
  def summary: String =
    s"$table: $selected of $total files selected, $skipped skipped, " +
      s"$unindexed unindexed" +
      (if (answered == 0) "" else s", $answered answered from the index") +
      (byJoins ++ bySketches ++ reasons ++ asOf.map(time => s"as of ${Instant.ofEpochMilli(time)}"))
        .map("; " + _).mkString

  private def bySketches: Option[String] =
    if (skippedBySketches == 0) None else Some(s"$skippedBySketches skipped by sketches")

  private def byJoins: Option[String] =
    if (joins.isEmpty) None
    else Some(s"$skippedByJoins skipped by join keys of ${joins.mkString(" and ")}")
}

object SkippingOutcome {

  /** The outcome of a scan that reads all of its files without using an index. */
  def unserved(table: String, files: Int, bytes: Long, reason: String): SkippingOutcome =
    SkippingOutcome(
      table, selected = 0, skipped = 0, skippedByJoins = 0, skippedBySketches = 0,
      unindexed = files,
      selectedBytes = bytes, totalBytes = bytes, nanos = 0L, IndexFilter.Always, joins = Nil,
      Seq(reason), openedFiles = Nil)
}
