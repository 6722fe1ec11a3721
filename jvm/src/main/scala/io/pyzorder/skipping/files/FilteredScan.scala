package io.pyzorder.skipping.files

import org.apache.spark.sql.catalyst.expressions.Expression

import io.pyzorder.skipping.predicate.JoinKeyFilter

/**
 * A scan in a plan. Two scans in one plan are equal if they read the same files in the same way.
 *
 * @param partitionFilters the scan's filters on partition columns, without column ids
 * @param dataFilters      the scan's other filters, without column ids
 */
private[skipping] final case class FilteredScan private[files] (
    index: ZOrderFileIndex,
    partitionFilters: Seq[Expression],
    dataFilters: Seq[Expression],
    private val reading: ZOrderFileIndex.Reading) {

  private def files: ScanFiles = index.plan.files

  /** The same scan without the filters that are derived from joins. */
  def unfiltered: FilteredScan = copy(index = index.withoutFilters)

  /** The same scan, but also without the files that these filters rule out. */
  def withFilters(keys: Seq[JoinKeyFilter], ranges: Seq[FileRanges]): FilteredScan =
    copy(index = index.withJoins(keys).withRanges(ranges))

  /** The state of the files for estimates. */
  private[files] def state: TableState = index.estimatedState(partitionFilters)

  /** The files that the scan is expected to read. */
  def estimated: IndexedSeq[ExaminedFile] = {
    val now = state
    withoutLast match {
      case Some((others, last)) => files.narrowed(this, now)(last.estimated(others.estimated))
      case None =>
        files.evaluated(this, now)(index.estimatedFiles(partitionFilters, dataFilters))
    }
  }

  /** The files that the scan reads when the plan is executed, and possibly some that it skips. */
  private[files] def pinned: IndexedSeq[ExaminedFile] = {
    val now = ScanFiles.Pinned
    withoutLast match {
      case Some((others, last)) => files.narrowed(this, now)(last.pinned(others.pinned))
      case None => files.evaluated(this, now)(index.pinned(partitionFilters, dataFilters))
    }
  }

  /** The same scan without the ranges that were added last, together with those ranges. */
  private def withoutLast: Option[(FilteredScan, FileRanges)] =
    index.ranges.lastOption.map(last => copy(index = index.withoutLastRanges) -> last)
}
