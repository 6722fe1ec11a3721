package io.pyzorder.expressions

import java.math.BigInteger

import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.{ByteArray, UTF8String}

/**
 * Encodes values as bits and bytes that, compared as unsigned numbers, sort like the values.
 * sql/FORMAT.md ("z-values") specifies the format, and pyzorder/ordered_bytes.py is a readable
 * reference implementation.
 *
 * Values are in Catalyst's internal representation. For example, dates are Int days and timestamps
 * are Long microseconds.
 */
object OrderedBytes {

  private val SignBit = Long.MinValue

  /**
   * For a decimal of more than 18 digits, the number of leading bits of the magnitude that the
   * encoding preserves. The highest of them is always 1, so it is counted but not stored.
   */
  private val MantissaBits = 57

  /**
   * For each precision, the number of bytes needed to represent a decimal's sign and all its
   * digits.
   */
  private val decimalWidths: Array[Int] = Array.tabulate(DecimalType.MAX_PRECISION + 1) { p =>
    BigInteger.TEN.pow(p).subtract(BigInteger.ONE).bitLength / 8 + 1
  }

  /** Whether values of `dataType` have an order and can be encoded. */
  def supports(dataType: DataType): Boolean =
    isLong(dataType) || isBytes(dataType) || dataType.isInstanceOf[DecimalType]

  /**
   * The 64 ordered bits of `value`, left-aligned, to be compared as an unsigned number. Only null
   * maps to 0; a value whose bits would all be 0 maps to 1 instead. The bits preserve the order of
   * the values, but different strings, binary values and decimals of more than 18 digits may have
   * the same bits. The two smallest values of a 64-bit integer type also have the same bits.
   */
  def of(value: Any, dataType: DataType): Long = {
    if (value == null) 0L
    else if (isLong(dataType)) {
      ofLong(longOf(value, dataType), shift(dataType), flip(dataType))
    } else {
      dataType match {
        case d: DecimalType => ofWideDecimal(value.asInstanceOf[Decimal], d.scale)
        case t if shim.isByteOrderedString(t) => ofUtf8(value.asInstanceOf[UTF8String])
        case _ => ofBytes(wholeOf(value, dataType))
      }
    }
  }

  /**
   * The complete encoding of `value`, which must not be null. Compared lexicographically as
   * unsigned bytes, the encodings sort like the values. Binary values, and strings that are ordered
   * by their bytes, are represented by their own bytes. Collated strings are represented by their
   * sort keys. Every other type has a fixed width.
   */
  def wholeOf(value: Any, dataType: DataType): Array[Byte] = {
    if (isLong(dataType)) {
      bigEndian((longOf(value, dataType) << shift(dataType)) ^ flip(dataType), width(dataType))
    } else {
      dataType match {
        case d: DecimalType => wideDecimalBytes(value.asInstanceOf[Decimal], d)
        case BinaryType => value.asInstanceOf[Array[Byte]]
        case _ => shim.collationKey(value.asInstanceOf[UTF8String], dataType)
      }
    }
  }

  /**
   * Whether values of `dataType` have at most 64 bits, so that `longOf` represents them completely.
   */
  def isLong(dataType: DataType): Boolean = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType => true
    case FloatType | DoubleType => true
    case DateType | TimestampType | TimestampNTZType => true
    case _: YearMonthIntervalType | _: DayTimeIntervalType => true
    case d: DecimalType => d.precision <= Decimal.MAX_LONG_DIGITS
    case _ => isTime(dataType)
  }

  /**
   * A long that represents `value`. Compared as signed numbers, these longs sort like the values.
   * Equal longs mean equal values. As in Spark, -0.0 equals 0.0, and all NaNs are one value above
   * +infinity. Only for types that satisfy `isLong`, and not for null.
   */
  def longOf(value: Any, dataType: DataType): Long = dataType match {
    case BooleanType => if (value.asInstanceOf[Boolean]) 1L else 0L
    case ByteType => value.asInstanceOf[Byte].toLong
    case ShortType => value.asInstanceOf[Short].toLong
    case IntegerType | DateType | _: YearMonthIntervalType => value.asInstanceOf[Int].toLong
    case FloatType => longOfFloat(value.asInstanceOf[Float])
    case DoubleType => longOfDouble(value.asInstanceOf[Double])
    case d: DecimalType => longOfDecimal(value.asInstanceOf[Decimal], d.scale)
    case _ => value.asInstanceOf[Long]
  }

  /** `longOf` for a float: the float's bits, with the order of negative values reversed. */
  def longOfFloat(value: Float): Long = {
    val bits = java.lang.Float.floatToIntBits(value + 0.0f)
    (if (bits < 0) bits ^ Int.MaxValue else bits).toLong
  }

  /** `longOf` for a double: the double's bits, with the order of negative values reversed. */
  def longOfDouble(value: Double): Long = {
    val bits = java.lang.Double.doubleToLongBits(value + 0.0d)
    if (bits < 0) bits ^ Long.MaxValue else bits
  }

  /** `longOf` for a decimal of at most 18 digits: its unscaled value at the type's scale. */
  def longOfDecimal(value: Decimal, scale: Int): Long =
    if (value.scale == scale) value.toUnscaledLong
    else value.toJavaBigDecimal.setScale(scale).unscaledValue.longValueExact

  /** The 64 ordered bits of a value, given its `longOf` and its type's shift and flip. Never 0. */
  def ofLong(value: Long, shift: Int, flip: Long): Long = notZero((value << shift) ^ flip)

  /** The 64 ordered bits of a string ordered by its bytes: the first eight bytes. Never 0. */
  def ofUtf8(value: UTF8String): Long = notZero(value.getPrefix)

  /** The 64 ordered bits of a BINARY value: its first eight bytes, padded with zeros. Never 0. */
  def ofBytes(value: Array[Byte]): Long = notZero(ByteArray.getPrefix(value))

  /**
   * The 64 ordered bits of a decimal of more than 18 digits: one bit for the sign, seven for the
   * bit length of the magnitude, and the 56 bits that follow the magnitude's highest bit. If the
   * value is negative, all bits are complemented. This encoding preserves all digits of a value
   * whose magnitude has at most 57 bits.
   */
  def ofWideDecimal(value: Decimal, scale: Int): Long = {
    val unscaled = unscaledOf(value, scale)
    val magnitude = unscaled.abs
    val length = magnitude.bitLength
    val leading = magnitude.shiftLeft(MantissaBits).shiftRight(length).longValue
    val tail = leading & ((1L << (MantissaBits - 1)) - 1)
    val bits = SignBit | (length.toLong << (MantissaBits - 1)) | tail
    notZero(if (unscaled.signum < 0) ~bits else bits)
  }

  /** The number of bits by which `longOf` is shifted left for this type, to fill 64 bits. */
  def shift(dataType: DataType): Int = 64 - bits(dataType)

  /**
   * The mask that turns signed order into unsigned order after the shift: the sign bit, or 0 for
   * types without a sign bit.
   */
  def flip(dataType: DataType): Long =
    if (dataType == BooleanType || isTime(dataType)) 0L else SignBit

  /** Whether `dataType` is TIME (nanoseconds since midnight), which was introduced in Spark 4.1. */
  private def isTime(dataType: DataType): Boolean =
    dataType.getClass.getName == "org.apache.spark.sql.types.TimeType"

  /** Whether the type is encoded as a byte string of any length. */
  private def isBytes(dataType: DataType): Boolean =
    dataType == BinaryType || shim.isString(dataType)

  /**
   * The number of bits of a type that satisfies `isLong`. TIME needs 47 bits, because its values
   * are nanoseconds since midnight.
   */
  private def bits(dataType: DataType): Int = dataType match {
    case BooleanType => 1
    case ByteType => 8
    case ShortType => 16
    case IntegerType | DateType | FloatType | _: YearMonthIntervalType => 32
    case d: DecimalType => 8 * decimalWidths(d.precision)
    case _ => if (isTime(dataType)) 47 else 64
  }

  /** The number of bytes that `wholeOf` returns for a type that satisfies `isLong`. */
  private def width(dataType: DataType): Int = (bits(dataType) + 7) / 8

  private def unscaledOf(value: Decimal, scale: Int): BigInteger =
    value.toJavaBigDecimal.setScale(scale).unscaledValue

  private def wideDecimalBytes(value: Decimal, dataType: DecimalType): Array[Byte] = {
    val digits = unscaledOf(value, dataType.scale).toByteArray
    val bytes = new Array[Byte](decimalWidths(dataType.precision))
    val start = bytes.length - digits.length
    java.util.Arrays.fill(bytes, 0, start, (digits(0) >> 7).toByte)
    System.arraycopy(digits, 0, bytes, start, digits.length)
    bytes(0) = (bytes(0) ^ 0x80).toByte
    bytes
  }

  private def bigEndian(bits: Long, width: Int): Array[Byte] = {
    val bytes = new Array[Byte](width)
    var i = 0
    while (i < width) {
      bytes(i) = (bits >>> (56 - 8 * i)).toByte
      i += 1
    }
    bytes
  }

  private def notZero(bits: Long): Long = if (bits == 0L) 1L else bits
}
