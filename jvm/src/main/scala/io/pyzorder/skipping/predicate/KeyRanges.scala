package io.pyzorder.skipping.predicate

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.DataType

/**
 * Collects the ranges in which the values of a column lie, file by file. In each file, every value
 * that is neither null nor NaN lies between the file's bounds. The union of all files' bounds
 * therefore contains every value of all files. If the bounds of one file are unknown, so is the
 * union.
 *
 * Nulls are ignored, because a null key equals nothing. NaN, which bounds do not cover, is recorded
 * separately. Bounds that differ only in the sign of a zero are equal in Spark's order.
 *
 * @param dataType the type of the values
 * @param limit    the maximum number of ranges; if there are more, neighbouring ranges are merged
 */
final class KeyRanges(dataType: DataType, limit: Int) {

  private val ordering = TypeUtils.getInterpretedOrdering(dataType)
  private val found = ArrayBuffer.empty[(Any, Any)]
  private var mayBeNaN = false
  private var isKnown = true

  /** Adds the values of one file. */
  def add(column: FilterColumn, facts: ColumnStatisticsView, file: Int): Unit = {
    val seen = IndexFilter.seenAs(column, facts)
    if (seen.mayHaveValue(file)) {
      mayBeNaN ||= seen.nanSeen(file)
      if (seen.bounded(file)) found += ((seen.min(file), seen.max(file)))
      else if (!seen.empty(file)) addUnknown()
    }
  }

  /** Adds values about which nothing is known. */
  def addUnknown(): Unit = isKnown = false

  /** The ranges; None if some values are unknown. */
  def result: Option[KeyValues.Ranges] =
    if (isKnown) Some(KeyValues.Ranges(limited(disjoint), mayBeNaN)) else None

  private def disjoint: IndexedSeq[(Any, Any)] = {
    val merged = ArrayBuffer.empty[(Any, Any)]
    found.sortWith((a, b) => ordering.lt(a._1, b._1)).foreach { case (low, high) =>
      merged.lastOption match {
        case Some((first, last)) if ordering.lteq(low, last) =>
          merged(merged.length - 1) = (first, ordering.max(last, high))
        case _ => merged += ((low, high))
      }
    }
    merged.toIndexedSeq
  }

  private def limited(ranges: IndexedSeq[(Any, Any)]): IndexedSeq[(Any, Any)] =
    if (ranges.length <= limit) ranges
    else ranges.grouped((ranges.length + limit - 1) / limit)
      .map(several => (several.head._1, several.last._2)).toIndexedSeq
}
