package io.pyzorder.skipping.predicate

import org.apache.spark.sql.types.DataType

/**
 * Collects, file by file, the ranges in which a column's values lie. Every value in a file that is
 * neither null nor NaN lies between the file's bounds. The union of all files' bounds therefore
 * contains all such values. If the bounds of one file are unknown, so is the union.
 *
 * Nulls are ignored, because a null key equals nothing. NaN, which bounds do not cover, is recorded
 * separately. Bounds that differ only in the sign of a zero are equal in Spark's order.
 *
 * @param dataType the type of the values
 * @param limit    the maximum number of ranges
 */
final class KeyRanges(dataType: DataType, limit: Int) {

  private val union = new RangeUnion(dataType, limit)
  private var mayBeNaN = false
  private var isKnown = true

  /** Adds the values of one file. */
  def add(column: FilterColumn, facts: ColumnStatisticsView, file: Int): Unit = {
    val seen = IndexFilter.seenAs(column, facts)
    if (seen.mayHaveValue(file)) {
      mayBeNaN ||= seen.nanSeen(file)
      if (seen.bounded(file)) union.add(seen.min(file), seen.max(file))
      else if (!seen.empty(file)) addUnknown()
    }
  }

  /** Adds values about which nothing is known. */
  def addUnknown(): Unit = isKnown = false

  /** The ranges; None if nothing is known about some of the values. */
  def result: Option[KeyValues.Ranges] =
    if (isKnown) Some(KeyValues.Ranges(union.result, mayBeNaN)) else None
}
