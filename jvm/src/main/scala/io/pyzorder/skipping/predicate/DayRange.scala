package io.pyzorder.skipping.predicate

import org.apache.spark.sql.catalyst.expressions.{Cast, Expression, GreaterThanOrEqual, LessThan}
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types.{DateType, TimestampType}

/**
 * Recognizes the conditions into which Spark's optimizer turns `CAST(ts AS DATE) = day`: `ts >=
 * start` and `ts < end`, where `start` and `end` are the first instants of the day and of the next
 * day. Statistics of the date may then rule out more files than statistics of the timestamp,
 * because a file may have timestamps before and after the day.
 *
 * In a zone whose clocks are set back past midnight, an instant in this range may belong to the
 * previous day. The conditions then do not imply the equality, so they are not recognized.
 */
private[predicate] object DayRange {

  /** The date expressions, each with the day that the conditions imply for it. */
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
