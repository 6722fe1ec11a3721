package io.pyzorder.skipping.files

import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.fs.FileStatus

import io.pyzorder.skipping.predicate.{IndexFilter, JoinKeyFilter}

/** Counts the selected, skipped and unindexed files of a listing. */
private[skipping] final class SkippingCounts {
  private var selected, skipped, skippedByJoins, skippedBySketches, unindexed = 0
  private var selectedBytes, skippedBytes = 0L
  private val opened = ArrayBuffer.empty[FileStatus]

  /**
   * Counts skipped files.
   *
   * @param bytes      their total size
   * @param byJoins    how many of them only the join keys rule out
   * @param bySketches how many of them only sketches rule out
   */
  def skip(number: Int, bytes: Long, byJoins: Int, bySketches: Int): Unit = {
    skipped += number
    skippedBytes += bytes
    skippedByJoins += byJoins
    skippedBySketches += bySketches
  }

  /** Counts a file that is opened. */
  def open(file: FileStatus, verdict: PruningResult): Unit = {
    if (verdict == PruningResult.Selected) selected += 1 else unindexed += 1
    selectedBytes += file.getLen
    opened += file
  }

  /** Whether there are indexed files and all of them are opened. */
  def selectsAll: Boolean = selected > 0 && skipped == 0

  /**
   * The outcome that EXPLAIN shows.
   *
   * @param nanos the time spent on the index, in nanoseconds
   * @param asked false if there is an index but it was not evaluated; in that case, all opened
   *              files count as selected, and none as unindexed
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
      skippedBySketches = skippedBySketches,
      unindexed = if (asked) unindexed else 0,
      selectedBytes = selectedBytes,
      totalBytes = selectedBytes + skippedBytes,
      nanos = nanos,
      filter = filter,
      joins = joins,
      reasons = reasons,
      openedFiles = opened.toSeq)
}
