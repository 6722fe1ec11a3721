package io.pyzorder.skipping.predicate

import org.apache.spark.sql.catalyst.expressions.{Cast, Expression, GreaterThanOrEqual, LessThan}
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types.{DateType, TimestampType}

/**
 * Recognizes the conditions into which Spark's optimizer turns `CAST(ts AS DATE) = day`: `ts >=
 * start AND ts < end`, where `start` and `end` are the first instants of the day and of the next
 * day. Statistics of the date may then skip more files than statistics of the timestamp: if a file
 * has timestamps before and after the day, only a sketch of its dates can show that the day does
 * not occur in it.
 *
 * In a zone whose clocks are set back past midnight, an instant between `start` and `end` may
 * belong to the previous day. The conditions then do not imply the equality, so such a day is not
 * recognized.
 */
private[predicate] object DayRange {

  /** The date expressions, each with the day that it equals wherever the conditions are TRUE. */
  def of(conditions: Seq[Expression], zone: String): Seq[(Expression, Literal)] = for {
    GreaterThanOrEqual(from, Literal(start: Long, TimestampType)) <- conditions
    LessThan(to, Literal(end: Long, TimestampType)) <- conditions
    if from.semanticEquals(to)
    day <- day(start, end, zone)
  } yield (Cast(from, DateType, Some(zone)), Literal(day, DateType))

  private def day(start: Long, end: Long, name: String): Option[Int] = {
    val zone = DateTimeUtils.getZoneId(name)
    val day = DateTimeUtils.microsToDays(start, zone)
    def first(day: Int): Long = DateTimeUtils.daysToMicros(day, zone)
    if (first(day) == start && first(day + 1) == end && DstDayRepeats.of(zone).inOrder(start, end))
      Some(day)
    else None
  }
}
