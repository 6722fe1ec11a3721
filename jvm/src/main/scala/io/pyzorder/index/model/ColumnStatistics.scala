package io.pyzorder.index.model

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.DataType

/**
 * What is known of one column in one file. Values are Catalyst's internal ones (Int days, Long
 * microseconds, UTF8String, Decimal, ...), compared as Spark compares them.
 *
 * @param bounds    least and greatest value, NaN and null aside; None: unknown, or no such value
 * @param exact     both bounds are values of the file, not merely limits that enclose them
 * @param nullCount number of nulls, None: unknown
 * @param nanSeen   some value is NaN, or may be (always false for types without NaN)
 * @param empty     proved: no value is left when nulls and NaN are taken away
 * @param settingsDependent another read setting (see ReadSettings) may read other values
 */
final case class ColumnStatistics(
    bounds: Option[(Any, Any)],
    exact: Boolean,
    nullCount: Option[Long],
    nanSeen: Boolean,
    empty: Boolean,
    settingsDependent: Boolean)

object ColumnStatistics {

  /** Nothing is known: every predicate on the column keeps the file. */
  val unknown: ColumnStatistics = ColumnStatistics(
    bounds = None,
    exact = false,
    nullCount = None,
    nanSeen = true,
    empty = false,
    settingsDependent = false)

  /** What is known of a file of which two parts are known. */
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
