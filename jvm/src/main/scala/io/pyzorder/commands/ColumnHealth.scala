package io.pyzorder.commands

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.DataType

/**
 * How well the [min, max] ranges of one column separate the files.
 *
 * @param averageOverlap how many other files a file's range overlaps, on average; 0 is best
 * @param maxDepth       the largest number of files whose ranges contain the same value; 1 is best
 */
final case class ColumnHealth(averageOverlap: Double, maxDepth: Int)

object ColumnHealth {

  /**
   * Computes a column's health from its range in each file. Returns None if there are no ranges.
   */
  def of(dataType: DataType, ranges: Seq[(Any, Any)]): Option[ColumnHealth] =
    if (ranges.isEmpty) {
      None
    } else {
      val order = TypeUtils.getInterpretedOrdering(dataType)
      val mins = ranges.map(_._1).sorted(order).toArray
      val maxs = ranges.map(_._2).sorted(order).toArray
      // The loop sweeps over the sorted minima and maxima. Two ranges overlap even if one begins
      // exactly where the other ends. A range overlaps every range that is open when it begins.
      // Each overlapping pair is therefore counted once, when the later range begins.
      var pairs = 0L
      var depth = 0
      var maxDepth = 0
      var ended = 0
      var begun = 0
      while (begun < mins.length) {
        if (order.lteq(mins(begun), maxs(ended))) {
          pairs += depth
          depth += 1
          maxDepth = math.max(maxDepth, depth)
          begun += 1
        } else {
          depth -= 1
          ended += 1
        }
      }
      Some(ColumnHealth(2.0 * pairs / ranges.size, maxDepth))
    }
}
