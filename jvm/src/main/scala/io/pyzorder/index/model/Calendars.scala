package io.pyzorder.index.model

import org.apache.spark.sql.catalyst.util.RebaseDateTime
import org.apache.spark.sql.types._

/** Determines which dates and timestamps are the same in every calendar that files may use. */
private[pyzorder] object Calendars {

  private val MicrosPerMilli = 1000L

  /** Whether the stored form of the type's values depends on a calendar or a time zone. */
  def isTemporal(dataType: DataType): Boolean =
    dataType == DateType || dataType == TimestampType || dataType == TimestampNTZType

  /**
   * Whether the value is at or after the point from which the hybrid and the proleptic Gregorian
   * calendars agree in every time zone (1582-10-15 for dates, about 1900 for timestamps). Spark's
   * rebasing leaves values from this point on unchanged, and Spark's own check in EXCEPTION mode
   * uses the same point.
   */
  def isModern(value: Any, dataType: DataType): Boolean = (value, dataType) match {
    case (days: Int, DateType) => days >= RebaseDateTime.lastSwitchJulianDay
    case (micros: Long, _) => micros >= RebaseDateTime.lastSwitchJulianTs
  }

  /**
   * Whether `isModern` is true for every value of a column with these statistics. False if there
   * are no bounds.
   */
  def isModern(statistics: ColumnStatistics, dataType: DataType): Boolean =
    statistics.bounds.exists { case (least, _) => isModern(least, dataType) }

  /**
   * Marks the bounds of dates and timestamps as valid only for scans with the same temporal
   * settings, and drops bounds for which `isModern` is false.
   */
  def dependent(statistics: ColumnStatistics, dataType: DataType): ColumnStatistics =
    if (!isTemporal(dataType) || statistics.empty) statistics
    else if (isModern(statistics, dataType)) statistics.copy(settingsDependent = true)
    else statistics.copy(bounds = None, exact = false, settingsDependent = true)

  /**
   * Truncates the bounds of timestamps to milliseconds. TIMESTAMP_NTZ is always stored in
   * microseconds.
   */
  def inMillis(statistics: ColumnStatistics, dataType: DataType): ColumnStatistics =
    if (dataType != TimestampType) {
      statistics
    } else {
      def cut(micros: Any): Any =
        Math.floorDiv(micros.asInstanceOf[Long], MicrosPerMilli) * MicrosPerMilli
      statistics.copy(bounds = statistics.bounds.map { case (a, b) => (cut(a), cut(b)) })
    }
}
