package io.pyzorder.index.memory

import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.{ByteArray, UTF8String}

import io.pyzorder.index.model.LongValue

/** The minimum and maximum of one column in each file, stored in compact arrays. */
sealed abstract class BoundArrays {

  /** The minimum or maximum of file i, in Catalyst's internal representation. */
  def value(i: Int, least: Boolean, dataType: DataType): Any

  /** The approximate heap size in bytes. */
  def estimatedBytes: Long
}

/** Collects the bounds of each file. */
sealed abstract class BoundsBuilder {

  /** Stores the bounds of file i, given in Catalyst's internal representation. */
  def set(i: Int, least: Any, greatest: Any): Unit

  /** Whether both bounds of file i are set and the minimum is not greater than the maximum. */
  def inOrder(i: Int): Boolean

  def result(): BoundArrays
}

/**
 * Bounds of types whose values are ordered like longs: integers, boolean (0, 1), date (days),
 * timestamps and intervals (microseconds, months), time (nanoseconds), and decimals of at most 18
 * digits (unscaled).
 */
final class LongBounds(val mins: PackedLongs, val maxs: PackedLongs) extends BoundArrays {

  override def value(i: Int, least: Boolean, dataType: DataType): Any =
    LongValue.toCatalyst(if (least) mins(i) else maxs(i), dataType)

  override def estimatedBytes: Long = mins.estimatedBytes + maxs.estimatedBytes
}

/** Collects bounds that are given as longs or in Catalyst's internal representation. */
final class LongBoundsBuilder(numFiles: Int) extends BoundsBuilder {

  val mins = new Array[Long](numFiles)
  val maxs = new Array[Long](numFiles)

  override def set(i: Int, least: Any, greatest: Any): Unit = {
    mins(i) = LongBounds.toLong(least)
    maxs(i) = LongBounds.toLong(greatest)
  }

  override def inOrder(i: Int): Boolean = mins(i) <= maxs(i)

  override def result(): LongBounds = new LongBounds(PackedLongs.of(mins), PackedLongs.of(maxs))
}

object LongBounds {

  /** Converts a value from Catalyst's internal representation to a long. */
  def toLong(value: Any): Long = value match {
    case v: Boolean => if (v) 1L else 0L
    case v: Byte => v.toLong
    case v: Short => v.toLong
    case v: Int => v.toLong
    case v: Long => v
    case v: Decimal => v.toUnscaledLong
  }
}

/**
 * Bounds of floats and doubles. Floats are widened, which preserves their values and their order.
 */
final class DoubleBounds(val mins: Array[Double], val maxs: Array[Double]) extends BoundArrays {

  override def value(i: Int, least: Boolean, dataType: DataType): Any = {
    val value = if (least) mins(i) else maxs(i)
    if (dataType == FloatType) value.toFloat else value
  }

  override def estimatedBytes: Long = 16L * mins.length
}

/** Collects bounds that are given as doubles or in Catalyst's internal representation. */
final class DoubleBoundsBuilder(numFiles: Int) extends BoundsBuilder {

  val mins = new Array[Double](numFiles)
  val maxs = new Array[Double](numFiles)

  override def set(i: Int, least: Any, greatest: Any): Unit = {
    mins(i) = DoubleBounds.toDouble(least)
    maxs(i) = DoubleBounds.toDouble(greatest)
  }

  override def inOrder(i: Int): Boolean = mins(i) <= maxs(i) // false if one of them is NaN

  override def result(): DoubleBounds = new DoubleBounds(mins, maxs)
}

object DoubleBounds {

  /** Converts a float or double to a double. */
  def toDouble(value: Any): Double = value match {
    case v: Float => v.toDouble
    case v: Double => v
  }
}

/**
 * Bounds that are UTF8String, Array[Byte] or Decimal objects. For a file without bounds, the
 * minimum and the maximum are null.
 */
final class ObjectBounds(val mins: Array[AnyRef], val maxs: Array[AnyRef]) extends BoundArrays {

  override def value(i: Int, least: Boolean, dataType: DataType): Any =
    if (least) mins(i) else maxs(i)

  override def estimatedBytes: Long = sizes(mins) + sizes(maxs)

  private def sizes(values: Array[AnyRef]): Long = {
    var bytes = 4L * values.length
    var i = 0
    while (i < values.length) {
      values(i) match {
        case null =>
        case s: UTF8String => bytes += 56 + s.numBytes
        case b: Array[Byte] => bytes += 16 + b.length
        case _ => bytes += 96
      }
      i += 1
    }
    bytes
  }
}

/** Collects bounds that are given in Catalyst's internal representation. */
final class ObjectBoundsBuilder(numFiles: Int) extends BoundsBuilder {

  val mins = new Array[AnyRef](numFiles)
  val maxs = new Array[AnyRef](numFiles)

  override def set(i: Int, least: Any, greatest: Any): Unit = {
    mins(i) = least.asInstanceOf[AnyRef]
    maxs(i) = greatest.asInstanceOf[AnyRef]
  }

  override def inOrder(i: Int): Boolean = (mins(i), maxs(i)) match {
    case (least: UTF8String, greatest: UTF8String) => shim.compareBytes(least, greatest) <= 0
    case (least: Array[Byte], greatest: Array[Byte]) =>
      ByteArray.compareBinary(least, greatest) <= 0
    case (least: Decimal, greatest: Decimal) => least <= greatest
    case _ => false
  }

  override def result(): ObjectBounds = new ObjectBounds(mins, maxs)
}

object BoundArrays {

  /** A builder for the bounds of `numFiles` files. */
  def builder(dataType: DataType, numFiles: Int): BoundsBuilder = dataType match {
    case FloatType | DoubleType => new DoubleBoundsBuilder(numFiles)
    case d: DecimalType if d.precision > Decimal.MAX_LONG_DIGITS =>
      new ObjectBoundsBuilder(numFiles)
    case _: StringType | BinaryType => new ObjectBoundsBuilder(numFiles)
    case _ => new LongBoundsBuilder(numFiles)
  }
}
