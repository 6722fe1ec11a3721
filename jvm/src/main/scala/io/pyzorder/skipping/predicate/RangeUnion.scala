package io.pyzorder.skipping.predicate

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.{DataType, Decimal}

/**
 * A union of ranges of values, none of which is null or NaN. If there are too many ranges,
 * neighboring ones are merged, so the union may contain more values than were added. The widest
 * gaps remain. If the type defines no distance between values, as with STRING, equal numbers of
 * neighbors are merged.
 *
 * @param dataType the type of the values
 * @param limit    the maximum number of ranges
 * @param unmerged how many ranges may be added before neighboring ones are merged to save memory
 */
final class RangeUnion(dataType: DataType, limit: Int, unmerged: Int) {

  def this(dataType: DataType, limit: Int) =
    this(dataType, limit, math.max(8, 4L * limit).min(Int.MaxValue.toLong).toInt)

  private val ordering = TypeUtils.getInterpretedOrdering(dataType)
  private val found = ArrayBuffer.empty[(Any, Any)]

  /** Adds the values from `low` to `high`. */
  def add(low: Any, high: Any): Unit = {
    found += ((low, high))
    if (found.length > unmerged) {
      val merged = result
      found.clear()
      found ++= merged
    }
  }

  /** The ranges in order. They do not overlap. */
  def result: IndexedSeq[(Any, Any)] = limited(disjoint)

  private def disjoint: IndexedSeq[(Any, Any)] = {
    val merged = ArrayBuffer.empty[(Any, Any)]
    found.sortWith((a, b) => ordering.lt(a._1, b._1)).foreach { case (low, high) =>
      merged.lastOption match {
        case Some((first, last)) if ordering.lteq(low, last) || isNext(last, low) =>
          merged(merged.length - 1) = (first, ordering.max(last, high))
        case _ => merged += ((low, high))
      }
    }
    merged.toIndexedSeq
  }

  /** Whether there is no value of the type between the two, the first of which is less. */
  private def isNext(low: Any, high: Any): Boolean = (low, high) match {
    case (_: Long | _: Int | _: Short | _: Byte, _) => gap(low, high).contains(1.0)
    case _ => false
  }

  private def limited(ranges: IndexedSeq[(Any, Any)]): IndexedSeq[(Any, Any)] =
    if (ranges.length <= limit) ranges
    else {
      val starts = 0 +: startsAfterGaps(ranges)
      starts.zip(starts.tail :+ ranges.length).map { case (start, next) =>
        (ranges(start)._1, ranges(next - 1)._2)
      }
    }

  /** The positions of the ranges with which the merged ranges start, except for the first one. */
  private def startsAfterGaps(ranges: IndexedSeq[(Any, Any)]): IndexedSeq[Int] = {
    val gaps = (1 until ranges.length).map(i => i -> gap(ranges(i - 1)._2, ranges(i)._1))
    if (gaps.forall(_._2.isDefined)) gaps.sortBy(-_._2.get).take(limit - 1).map(_._1).sorted
    else {
      val size = (ranges.length + limit - 1) / limit
      size.until(ranges.length, size)
    }
  }

  private def gap(low: Any, high: Any): Option[Double] = (low, high) match {
    case (a: Long, b: Long) => Some(b.toDouble - a.toDouble)
    case (a: Int, b: Int) => Some(b.toDouble - a)
    case (a: Short, b: Short) => Some(b.toDouble - a)
    case (a: Byte, b: Byte) => Some(b.toDouble - a)
    case (a: Double, b: Double) => Some(b - a)
    case (a: Float, b: Float) => Some(b.toDouble - a)
    case (a: Decimal, b: Decimal) => Some(b.toDouble - a.toDouble)
    case _ => None
  }
}
