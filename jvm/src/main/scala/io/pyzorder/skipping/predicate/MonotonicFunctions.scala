package io.pyzorder.skipping.predicate

import java.time.ZoneId
import java.util.Locale

import org.apache.spark.sql.catalyst.expressions.{
  Cast, Expression, Literal, TruncDate, TruncTimestamp, Year
}
import org.apache.spark.sql.types._

/**
 * Functions that may be applied to a column before a comparison.
 *
 * A function f must satisfy two conditions. First, f never returns null for a non-null value (if f
 * fails, the file is kept). Second, a <= b implies f(a) <= f(b). Then min <= v <= max gives f(min)
 * <= f(v) <= f(max): the images of the bounds enclose the images of the values, and an index filter
 * uses nothing else. f need not be one-to-one, because every rule compares with `<=` or with a
 * single value to which f maps both bounds. A composition of functions that satisfy both conditions
 * also satisfies them.
 *
 * Functions that map a timestamp to its local day or to a longer unit need a condition on the
 * bounds, because setting a clock back past midnight repeats a day. In America/St_Johns, for
 * example, 2010-11-07 began, was followed by 2010-11-06 again, and then began a second time. See
 * DstDayRepeats.
 */
object MonotonicFunctions {

  private val IntegralDigits: Map[DataType, Int] =
    Map(ByteType -> 3, ShortType -> 5, IntegerType -> 10, LongType -> 19)

  private val IntegralOrder: Seq[DataType] = Seq(ByteType, ShortType, IntegerType, LongType)

  private val Dates = Set("YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MON", "MM", "WEEK")

  private val Days = Dates ++ Set("DAY", "DD")

  private val Fractions = Set("SECOND", "MILLISECOND", "MICROSECOND")

  /**
   * Returns the argument of a function that satisfies both conditions. Also returns a time zone if
   * the function satisfies them only where the argument's days are in order in that zone. If no
   * zone is returned, the function preserves order regardless of clock changes.
   */
  def unapply(function: Expression): Option[(Expression, Option[ZoneId])] = function match {
    case cast: Cast if cast.child.resolved =>
      (cast.child.dataType, cast.dataType) match {
        // A cast to the local day. Only a clock that is set back past midnight puts days out of
        // order.
        case (TimestampType, DateType) if cast.resolved => Some((cast.child, Some(cast.zoneId)))
        case (from, to) if widens(from, to) => Some((cast.child, None))
        case _ => None
      }
    // Years, and the first days of weeks, months, quarters and years, are in the same order as the
    // days.
    case Year(date) if date.dataType == DateType => Some((date, None))
    case TruncDate(date, Text(unit)) if Dates(unit) => Some((date, None))
    // The result is the first instant of a day, or of the first day of a longer unit. If the days
    // are in order, so are their first instants. Where a clock that is set back makes midnight
    // occur twice, instants before the transition map to the first midnight and later instants to
    // the second.
    case trunc @ TruncTimestamp(Text(unit), timestamp, _) if Days(unit) && trunc.resolved =>
      Some((timestamp, Some(trunc.zoneId)))
    // Offsets from UTC are whole numbers of seconds, so truncating to seconds or smaller units does
    // not depend on the zone.
    case TruncTimestamp(Text(unit), timestamp, _) if Fractions(unit) => Some((timestamp, None))
    // All other functions are excluded, because they may reorder or lose values. Examples are casts
    // of numbers to strings ('10' < '9'), casts between the two timestamp types (a local time that
    // falls into a daylight-saving gap is moved past later local times), hours and minutes in zones
    // whose offsets are not whole hours, arithmetic that can overflow, and narrowing conversions.
    case _ => None
  }

  private def widens(from: DataType, to: DataType): Boolean = (from, to) match {
    // The cast leaves the number unchanged.
    case (_, _) if IntegralOrder.contains(from) && IntegralOrder.contains(to) =>
      IntegralOrder.indexOf(from) <= IntegralOrder.indexOf(to)
    // Rounding to the nearest float or double never reverses the order of two numbers, though it
    // may make them equal.
    case (_, FloatType | DoubleType) if IntegralOrder.contains(from) => true
    // Every float can be represented as a double, NaN remains NaN, and -0.0 remains -0.0.
    case (FloatType, DoubleType) => true
    // If the decimal type has enough digits before the decimal point, the number is unchanged.
    // Otherwise, some numbers would become null.
    case (_, d: DecimalType) if IntegralOrder.contains(from) =>
      d.precision - d.scale >= IntegralDigits(from)
    case (a: DecimalType, b: DecimalType) =>
      b.scale >= a.scale && b.precision - b.scale >= a.precision - a.scale
    // The result is the first instant whose local time reaches the day's midnight. A later day's
    // midnight is reached at the same instant (where the zone skipped a day) or later.
    case (DateType, TimestampType) => true
    // Casting a date multiplies its day number by the length of a day. The reverse cast divides by
    // this length and rounds down.
    case (DateType, TimestampNTZType) | (TimestampNTZType, DateType) => true
    case _ => false
  }

  private object Text {
    def unapply(expression: Expression): Option[String] = expression match {
      case Literal(text, _: StringType) if text != null =>
        Some(text.toString.toUpperCase(Locale.ROOT))
      case _ => None
    }
  }
}
