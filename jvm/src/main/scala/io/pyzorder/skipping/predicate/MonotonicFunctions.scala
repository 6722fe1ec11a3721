package io.pyzorder.skipping.predicate

import java.time.ZoneId
import java.util.Locale

import org.apache.spark.sql.catalyst.expressions.{
  Cast, Expression, Literal, TruncDate, TruncTimestamp, Year
}
import org.apache.spark.sql.types._

/**
 * Functions that may stand between a column and a comparison.
 *
 * Needed of a function f: it gives a value for every value (never null, and where it fails the file
 * is kept), and a <= b implies f(a) <= f(b). Then min <= v <= max gives f(min) <= f(v) <= f(max):
 * the bounds' values enclose the values', which is all that an index filter uses. f need not be
 * one-to-one: every rule asks with `<=` or against a single value that both bounds have become.
 * Such functions of such functions are such functions.
 *
 * Three need a condition on [min, max], because a clock that is set back over midnight repeats a
 * day: in America/St_Johns 2010-11-07 came, went, and came again. See Midnights.
 */
object MonotonicFunctions {

  private val IntegralDigits: Map[DataType, Int] =
    Map(ByteType -> 3, ShortType -> 5, IntegerType -> 10, LongType -> 19)

  private val IntegralOrder: Seq[DataType] = Seq(ByteType, ShortType, IntegerType, LongType)

  private val Dates = Set("YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MON", "MM", "WEEK")

  private val Days = Dates ++ Set("DAY", "DD")

  private val Fractions = Set("SECOND", "MILLISECOND", "MICROSECOND")

  /**
   * What a proved function is applied to, and the time zone whose days its argument must pass in
   * order; None: it keeps the order whatever the clocks do.
   */
  def unapply(function: Expression): Option[(Expression, Option[ZoneId])] = function match {
    case cast: Cast if cast.child.resolved =>
      (cast.child.dataType, cast.dataType) match {
        // The local day, which only a clock set back over midnight takes back.
        case (TimestampType, DateType) if cast.resolved => Some((cast.child, Some(cast.zoneId)))
        case (from, to) if widens(from, to) => Some((cast.child, None))
        case _ => None
      }
    // Years, and first days of years to weeks, follow each other as the days do.
    case Year(date) if date.dataType == DateType => Some((date, None))
    case TruncDate(date, Text(unit)) if Dates(unit) => Some((date, None))
    // The first instant of a day, or of the first day of a longer unit: as the days follow each
    // other, so do their first instants. Where a clock set back makes midnight come twice, those
    // before have the first and those after the second.
    case trunc @ TruncTimestamp(Text(unit), timestamp, _) if Days(unit) && trunc.resolved =>
      Some((timestamp, Some(trunc.zoneId)))
    // Offsets are whole seconds: these are cut off without a look at the zone.
    case TruncTimestamp(Text(unit), timestamp, _) if Fractions(unit) => Some((timestamp, None))
    // Not here, because they swap or lose values: numbers to strings ('10' < '9'), between the two
    // timestamp types (a gap moves a local time past later ones), hours and minutes in zones whose
    // offsets are not whole hours, arithmetic that can overflow, anything narrowing.
    case _ => None
  }

  private def widens(from: DataType, to: DataType): Boolean = (from, to) match {
    // The same number.
    case (_, _) if IntegralOrder.contains(from) && IntegralOrder.contains(to) =>
      IntegralOrder.indexOf(from) <= IntegralOrder.indexOf(to)
    // Rounding to nearest never swaps two numbers, it may make them equal.
    case (_, FloatType | DoubleType) if IntegralOrder.contains(from) => true
    // Every float is a double, NaN stays NaN, -0.0 stays -0.0.
    case (FloatType, DoubleType) => true
    // Enough digits before the point: the same number. With fewer, some would become null.
    case (_, d: DecimalType) if IntegralOrder.contains(from) =>
      d.precision - d.scale >= IntegralDigits(from)
    case (a: DecimalType, b: DecimalType) =>
      b.scale >= a.scale && b.precision - b.scale >= a.precision - a.scale
    // The first instant whose local time reaches the day's midnight; a later day's midnight is
    // reached at the same instant (a zone that skipped a day) or later.
    case (DateType, TimestampType) => true
    // Days times 86400 seconds, and back without the rest.
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
