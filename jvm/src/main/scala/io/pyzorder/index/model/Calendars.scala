package io.pyzorder.index.model

import org.apache.spark.sql.catalyst.util.RebaseDateTime
import org.apache.spark.sql.types._

/** Which dates and timestamps read the same whatever calendar a file was written in. */
private[pyzorder] object Calendars {

  private val MicrosPerMilli = 1000L

  /** Types whose stored form depends on a calendar or a time zone. */
  def isTemporal(dataType: DataType): Boolean =
    dataType == DateType || dataType == TimestampType || dataType == TimestampNTZType

  /**
   * The value is one at or after which the hybrid and the proleptic Gregorian calendar agree in
   * every zone (dates 1582-10-15, timestamps about 1900): Spark's rebasing leaves it, and all
   * values after it, unchanged. Spark's own check in the mode EXCEPTION is the same.
   */
  def isModern(value: Any, dataType: DataType): Boolean = (value, dataType) match {
    case (days: Int, DateType) => days >= RebaseDateTime.lastSwitchJulianDay
    case (micros: Long, _) => micros >= RebaseDateTime.lastSwitchJulianTs
  }

  /** All values of a column of these statistics are modern; false when there are no bounds. */
  def isModern(statistics: ColumnStatistics, dataType: DataType): Boolean =
    statistics.bounds.exists { case (least, _) => isModern(least, dataType) }

  /** Bounds that hold only under the same settings; those that are not modern are dropped. */
  def dependent(statistics: ColumnStatistics, dataType: DataType): ColumnStatistics =
    if (!isTemporal(dataType) || statistics.empty) statistics
    else if (isModern(statistics, dataType)) statistics.copy(settingsDependent = true)
    else statistics.copy(bounds = None, exact = false, settingsDependent = true)

  /** Timestamps cut down to milliseconds; TIMESTAMP_NTZ is always kept in microseconds. */
  def inMillis(statistics: ColumnStatistics, dataType: DataType): ColumnStatistics =
    if (dataType != TimestampType) {
      statistics
    } else {
      def cut(micros: Any): Any =
        Math.floorDiv(micros.asInstanceOf[Long], MicrosPerMilli) * MicrosPerMilli
      statistics.copy(bounds = statistics.bounds.map { case (a, b) => (cut(a), cut(b)) })
    }
}
