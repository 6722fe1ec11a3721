package io.pyzorder.index.collect

import java.util.Arrays

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.{ByteArray, UTF8String}

import io.pyzorder.index.model.{ColumnStatistics, IndexedColumns, LongValue, TruncatedBounds}

/** Accumulates one column's statistics. */
private[index] sealed abstract class StatisticsAccumulator {

  /** The number of nulls so far. */
  var nulls: Long = 0L

  /** Adds a non-null value. */
  def update(row: SpecializedGetters, ordinal: Int): Unit

  /** The statistics of the values so far. */
  def result: ColumnStatistics

  protected def statistics(
      bounds: Option[(Any, Any)],
      exact: Boolean = true,
      nanSeen: Boolean = false,
      empty: Boolean = false): ColumnStatistics =
    ColumnStatistics(
      bounds,
      exact = exact && bounds.isDefined,
      nullCount = Some(nulls),
      nanSeen = nanSeen,
      empty = empty,
      settingsDependent = false)
}

private[index] object StatisticsAccumulator {

  /**
   * The accumulator for a field's values. For CHAR, only nulls are counted, because predicates
   * apply to padded values. For collated strings, only nulls are counted, because such strings are
   * not ordered by their bytes.
   */
  def of(field: StructField): StatisticsAccumulator = field.dataType match {
    case _ if IndexedColumns.isChar(field) => new NullsAccumulator
    case string: StringType if !IndexedColumns.isBinaryOrdered(string) => new NullsAccumulator
    case StringType | BinaryType => new BytesAccumulator(field.dataType)
    case FloatType => new DoubleAccumulator(FloatType, (row, i) => row.getFloat(i).toDouble)
    case DoubleType => new DoubleAccumulator(DoubleType, (row, i) => row.getDouble(i))
    case d: DecimalType if d.precision > Decimal.MAX_LONG_DIGITS => new DecimalAccumulator(d)
    case other => new LongAccumulator(other, LongValue.of(other))
  }
}

/** Counts only nulls. */
private final class NullsAccumulator extends StatisticsAccumulator {

  private var values = false

  override def update(row: SpecializedGetters, ordinal: Int): Unit = values = true

  override def result: ColumnStatistics = statistics(None, empty = !values)
}

/** Reads a value as a double. */
private trait DoubleValue {
  def apply(row: SpecializedGetters, ordinal: Int): Double
}

private final class LongAccumulator(dataType: DataType, value: LongValue)
    extends StatisticsAccumulator {

  private var values = false
  private var min = Long.MaxValue
  private var max = Long.MinValue

  override def update(row: SpecializedGetters, ordinal: Int): Unit = {
    val v = value(row, ordinal)
    values = true
    if (v < min) min = v
    if (v > max) max = v
  }

  override def result: ColumnStatistics =
    if (!values) statistics(None, empty = true)
    else statistics(
      Some((LongValue.toCatalyst(min, dataType), LongValue.toCatalyst(max, dataType))))
}

/**
 * Tracks NaN separately. As in Spark's comparisons, -0.0 and 0.0 are equal. Bounds that are zero
 * keep their sign.
 */
private final class DoubleAccumulator(dataType: DataType, value: DoubleValue)
    extends StatisticsAccumulator {

  private var values = false
  private var nan = false
  private var min = Double.PositiveInfinity
  private var max = Double.NegativeInfinity

  override def update(row: SpecializedGetters, ordinal: Int): Unit = {
    val v = value(row, ordinal)
    if (v.isNaN) {
      nan = true
    } else if (!values) {
      values = true
      min = v
      max = v
    } else {
      if (v < min) min = v
      if (v > max) max = v
    }
  }

  override def result: ColumnStatistics =
    if (!values) statistics(None, nanSeen = nan, empty = true)
    else statistics(Some((typed(min), typed(max))), nanSeen = nan)

  private def typed(value: Double): Any = if (dataType == FloatType) value.toFloat else value
}

/** Accumulates the statistics of decimals with more than 18 digits. */
private final class DecimalAccumulator(dataType: DecimalType) extends StatisticsAccumulator {

  private var min: Decimal = _
  private var max: Decimal = _

  override def update(row: SpecializedGetters, ordinal: Int): Unit = {
    val v = row.getDecimal(ordinal, dataType.precision, dataType.scale)
    if (min == null || v.compare(min) < 0) min = v.clone()
    if (max == null || v.compare(max) > 0) max = v.clone()
  }

  override def result: ColumnStatistics =
    if (min == null) statistics(None, empty = true) else statistics(Some((min, max)))
}

/**
 * Accumulates the statistics of binary values, or of strings without a collation. Both are compared
 * as unsigned bytes, and a prefix of a value sorts before the value.
 */
private[index] final class BytesAccumulator(dataType: DataType) extends StatisticsAccumulator {

  private var min: Array[Byte] = _
  private var max: Array[Byte] = _

  override def update(row: SpecializedGetters, ordinal: Int): Unit =
    if (dataType == BinaryType) {
      take(row.getBinary(ordinal))
    } else {
      val value = row.getUTF8String(ordinal)
      if (min == null || isOutside(value)) take(value.getBytes)
    }

  private var minString: UTF8String = _
  private var maxString: UTF8String = _
  private var minPrefix = 0L
  private var maxPrefix = 0L

  /**
   * Whether the value is below the minimum or above the maximum. For most values in between,
   * comparing the first eight bytes is enough.
   */
  private def isOutside(value: UTF8String): Boolean = {
    val prefix = signedPrefix(value)
    prefix < minPrefix || prefix > maxPrefix ||
    prefix == minPrefix && compare(value, minString) < 0 ||
    prefix == maxPrefix && compare(value, maxString) > 0
  }

  /**
   * The string's first eight bytes, padded with zeros, as a number. These numbers sort in the same
   * order as the bytes.
   */
  private def signedPrefix(value: UTF8String): Long = value.getPrefix ^ Long.MinValue

  /** Compares two strings that have the same `signedPrefix`. */
  private def compare(a: UTF8String, b: UTF8String): Int =
    if (a.numBytes == b.numBytes && a.numBytes <= 8) 0 else shim.compareBytes(a, b)

  /** Adds a value. The caller may reuse the array afterwards. */
  def take(value: Array[Byte]): Unit = {
    if (min == null || ByteArray.compareBinary(value, min) < 0) {
      min = Arrays.copyOf(value, value.length)
      minString = UTF8String.fromBytes(min)
      minPrefix = signedPrefix(minString)
    }
    if (max == null || ByteArray.compareBinary(value, max) > 0) {
      max = Arrays.copyOf(value, value.length)
      maxString = UTF8String.fromBytes(max)
      maxPrefix = signedPrefix(maxString)
    }
  }

  override def result: ColumnStatistics =
    if (min == null) {
      statistics(None, empty = true)
    } else {
      val exact = TruncatedBounds.fits(min) && TruncatedBounds.fits(max)
      val bounds = TruncatedBounds.of(min, max, dataType == StringType)
      statistics(bounds.map { case (a, b) => (typed(a), typed(b)) }, exact = exact)
    }

  private def typed(bytes: Array[Byte]): Any =
    if (dataType == BinaryType) bytes else UTF8String.fromBytes(bytes)
}
