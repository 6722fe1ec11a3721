package io.pyzorder.skipping

import org.apache.spark.sql.types._

/**
 * Casts that may stand between a column and a comparison.
 *
 * Needed of a cast f: it gives a value for every value (never null, and where it fails the file
 * is kept), and a <= b implies f(a) <= f(b). Then min <= v <= max gives f(min) <= f(v) <= f(max):
 * the cast bounds enclose the cast values, which is all that an index filter uses. f need not be
 * one-to-one: every rule asks with `<=` or against a single value that both bounds have become.
 */
object WideningCast {

  private val IntegralDigits: Map[DataType, Int] =
    Map(ByteType -> 3, ShortType -> 5, IntegerType -> 10, LongType -> 19)

  private val IntegralOrder: Seq[DataType] = Seq(ByteType, ShortType, IntegerType, LongType)

  /** Whether the cast is one of the proved. */
  def keepsOrder(from: DataType, to: DataType): Boolean = (from, to) match {
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
    // Days times 86400 seconds.
    case (DateType, TimestampNTZType) => true
    // Not here, because they swap or lose values: numbers to strings ('10' < '9'), timestamp to
    // date and between the two timestamp types (clocks set back), anything narrowing.
    case _ => false
  }
}
