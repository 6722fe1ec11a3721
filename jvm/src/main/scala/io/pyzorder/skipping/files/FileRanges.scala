package io.pyzorder.skipping.files

import org.apache.spark.sql.catalyst.expressions.Expression

import io.pyzorder.skipping.predicate.{FilterColumn, JoinKeyFilter}

/**
 * A filter on the key of one scan, derived from the files of other scans: every key that can have a
 * match is a value of a column in one of these files, so it lies between the column's bounds in
 * that file.
 *
 * @param bounds ranges that contain every key that can have a match
 * @param column the filtered scan's column, or an order-preserving function of it
 */
private[skipping] final case class FileRanges(bounds: KeyBounds, column: Expression) {

  /** The columns that the filter uses. */
  def columns: Seq[FilterColumn] = FilterColumn.unapply(column).toSeq

  /** The filter that the execution uses or, before the execution, a preview for display only. */
  private[files] def current: Option[JoinKeyFilter] = filter(bounds.current)

  /** The files in which some row may pass the filter that is used for estimates. */
  private[files] def estimated(files: IndexedSeq[ExaminedFile]): IndexedSeq[ExaminedFile] =
    matching(bounds.estimated, files)

  /** The files in which some row may pass the filter that the execution uses. */
  private[files] def pinned(files: IndexedSeq[ExaminedFile]): IndexedSeq[ExaminedFile] = {
    bounds.pin()
    matching(bounds.current, files)
  }

  private def matching(
      known: Option[KeyBounds.Known],
      files: IndexedSeq[ExaminedFile]): IndexedSeq[ExaminedFile] =
    filter(known).fold(files)(found => ExaminedFile.matching(files, found.filter))

  private def filter(known: Option[KeyBounds.Known]): Option[JoinKeyFilter] =
    known.flatMap(found => JoinKeyFilter.of(column, found.ranges, found.text))
}
