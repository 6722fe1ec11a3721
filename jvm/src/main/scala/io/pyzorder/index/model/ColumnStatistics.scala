package io.pyzorder.index.model

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.DataType

/**
 * The statistics of one column in one file. Values are in Catalyst's internal representation (Int
 * days, Long microseconds, UTF8String, Decimal, ...) and are compared as Spark compares them.
 *
 * @param bounds            the minimum and maximum of all values except NaN and null, or bounds
 *                          that enclose them; None if unknown, or if every value is NaN or null
 * @param exact             whether both bounds are values in the file; if false, the file's values
 *                          are only known to lie between them
 * @param nullCount         the number of nulls, or None if unknown
 * @param nanSeen           whether the column may contain NaN; meaningless for types without NaN
 * @param empty             whether the column provably contains only nulls and NaN
 * @param settingsDependent whether a scan with different read settings (see ReadSettings) may read
 *                          different values
 */
final case class ColumnStatistics(
    bounds: Option[(Any, Any)],
    exact: Boolean,
    nullCount: Option[Long],
    nanSeen: Boolean,
    empty: Boolean,
    settingsDependent: Boolean) {

  /**
   * True if there are no statistics. False for `failed`, because collecting the statistics again
   * would not help.
   */
  def isUnknown: Boolean = bounds.isEmpty && nullCount.isEmpty && !empty && !settingsDependent
}

object ColumnStatistics {

  /** No statistics: every predicate on the column keeps the file. */
  val unknown: ColumnStatistics = ColumnStatistics(
    bounds = None,
    exact = false,
    nullCount = None,
    nanSeen = true,
    empty = false,
    settingsDependent = false)

  /**
   * No statistics, because the values of an expression could not be computed. A refresh collects
   * `unknown` statistics again, but not `failed` ones.
   */
  val failed: ColumnStatistics = unknown.copy(settingsDependent = true)

  /** Merges the statistics of two parts of a file. */
  def merge(a: ColumnStatistics, b: ColumnStatistics, dataType: DataType): ColumnStatistics = {
    val bounds =
      if (a.empty) b.bounds
      else if (b.empty) a.bounds
      else for ((least, greatest) <- a.bounds; (otherLeast, otherGreatest) <- b.bounds) yield {
        val order = TypeUtils.getInterpretedOrdering(dataType)
        (order.min(least, otherLeast), order.max(greatest, otherGreatest))
      }
    ColumnStatistics(
      bounds = bounds,
      exact = bounds.isDefined && (a.exact || a.empty) && (b.exact || b.empty),
      nullCount = for (count <- a.nullCount; other <- b.nullCount) yield count + other,
      nanSeen = a.nanSeen || b.nanSeen,
      empty = a.empty && b.empty,
      settingsDependent = a.settingsDependent || b.settingsDependent)
  }
}
