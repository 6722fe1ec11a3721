package io.pyzorder.skipping.files

import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.fs.FileStatus

import io.pyzorder.skipping.predicate.{IndexFilter, JoinKeyFilter}

/** Counts the three outcomes over the files of a listing. */
private[skipping] final class SkippingCounts {
  private var selected, skipped, skippedByJoins, unindexed = 0
  private var selectedBytes, skippedBytes = 0L
  private val opened = ArrayBuffer.empty[FileStatus]

  /** A file of so many bytes is skipped. */
  def skip(bytes: Long, byJoins: Boolean): Unit = {
    skipped += 1
    skippedBytes += bytes
    if (byJoins) skippedByJoins += 1
  }

  /** A file is opened. */
  def open(file: FileStatus, verdict: PruningResult): Unit = {
    if (verdict == PruningResult.Selected) selected += 1 else unindexed += 1
    selectedBytes += file.getLen
    opened += file
  }

  /**
   * What happened, as EXPLAIN shows it.
   *
   * @param nanos time since the listing
   * @param asked whether any index was asked: if not, a file that is opened is not called unindexed
   */
  def outcome(
      table: String,
      filter: IndexFilter,
      joins: Seq[JoinKeyFilter],
      reasons: Seq[String],
      nanos: Long,
      asked: Boolean): SkippingOutcome =
    SkippingOutcome(
      table,
      selected = if (asked) selected else selected + unindexed,
      skipped = skipped,
      skippedByJoins = if (joins.isEmpty) 0 else skippedByJoins,
      unindexed = if (asked) unindexed else 0,
      selectedBytes = selectedBytes,
      totalBytes = selectedBytes + skippedBytes,
      nanos = nanos,
      filter = filter,
      joins = joins,
      reasons = reasons,
      openedFiles = opened.toSeq)
}
