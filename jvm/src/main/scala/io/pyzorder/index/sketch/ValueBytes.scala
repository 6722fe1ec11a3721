package io.pyzorder.index.sketch

import java.math.{BigInteger, RoundingMode}
import java.nio.{ByteBuffer, ByteOrder}

import org.apache.spark.sql.catalyst.expressions.{SpecializedGetters, XXH64}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods
import org.apache.spark.unsafe.types.UTF8String

import io.pyzorder.index.model.{IndexedColumns, LongValue}

/**
 * Converts the values of one type to bytes and back. These bytes are the input of ValueHash. Unlike
 * hashes, they identify a value. Different values therefore have different bytes, and `decode`
 * returns the value that Spark reads from the file.
 */
abstract class ValueBytes extends Serializable {

  /** The bytes of a non-null value. */
  def encode(row: SpecializedGetters, ordinal: Int): Array[Byte]

  /** Whether a non-null value has these bytes. */
  def matches(bytes: Array[Byte], row: SpecializedGetters, ordinal: Int): Boolean

  /** The value in Catalyst's internal representation. */
  def decode(bytes: Array[Byte]): Any
}

object ValueBytes {

  /**
   * The conversion for a type. None if the type has no hashes, and for FLOAT and DOUBLE: 0.0 and
   * -0.0 are equal, but some functions can tell them apart.
   */
  def of(dataType: DataType): Option[ValueBytes] = dataType match {
    case FloatType | DoubleType => None
    case other if ValueHash.of(other).isEmpty => None
    case StringType => Some(Strings)
    case BinaryType => Some(Binaries)
    case d: DecimalType if d.precision > Decimal.MAX_LONG_DIGITS => Some(new WideDecimals(d))
    case other if IndexedColumns.supports(other) => Some(new Longs(other))
    case _ => None
  }

  /** The hash of the value with these bytes; see ValueHash. */
  def hashOf(bytes: Array[Byte]): Long =
    XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET.toLong, bytes.length, ValueHash.Seed)

  private def equal(bytes: Array[Byte], base: AnyRef, offset: Long, length: Int): Boolean =
    bytes.length == length && ByteArrayMethods.arrayEquals(
      bytes, Platform.BYTE_ARRAY_OFFSET.toLong, base, offset, length.toLong)

  private object Strings extends ValueBytes {
    override def encode(row: SpecializedGetters, ordinal: Int): Array[Byte] =
      row.getUTF8String(ordinal).getBytes.clone()

    override def matches(bytes: Array[Byte], row: SpecializedGetters, ordinal: Int): Boolean = {
      val value = row.getUTF8String(ordinal)
      equal(bytes, value.getBaseObject, value.getBaseOffset, value.numBytes)
    }

    override def decode(bytes: Array[Byte]): Any = UTF8String.fromBytes(bytes)
  }

  private object Binaries extends ValueBytes {
    override def encode(row: SpecializedGetters, ordinal: Int): Array[Byte] =
      row.getBinary(ordinal).clone()

    override def matches(bytes: Array[Byte], row: SpecializedGetters, ordinal: Int): Boolean = {
      val value = row.getBinary(ordinal)
      equal(bytes, value, Platform.BYTE_ARRAY_OFFSET.toLong, value.length)
    }

    override def decode(bytes: Array[Byte]): Any = bytes.clone()
  }

  private final class Longs(dataType: DataType) extends ValueBytes {
    @transient private lazy val value = LongValue.of(dataType)

    override def encode(row: SpecializedGetters, ordinal: Int): Array[Byte] =
      ofLong(value(row, ordinal))

    override def matches(bytes: Array[Byte], row: SpecializedGetters, ordinal: Int): Boolean =
      toLong(bytes) == value(row, ordinal)

    override def decode(bytes: Array[Byte]): Any = LongValue.toCatalyst(toLong(bytes), dataType)
  }

  /** Decimals of more than 18 digits. Unscaled values that fit into a BIGINT have 8 bytes. */
  private final class WideDecimals(dataType: DecimalType) extends ValueBytes {
    override def encode(row: SpecializedGetters, ordinal: Int): Array[Byte] = {
      val unscaled = row.getDecimal(ordinal, dataType.precision, dataType.scale)
        .toJavaBigDecimal.setScale(dataType.scale, RoundingMode.HALF_UP).unscaledValue
      if (unscaled.bitLength < 64) ofLong(unscaled.longValue) else unscaled.toByteArray
    }

    override def matches(bytes: Array[Byte], row: SpecializedGetters, ordinal: Int): Boolean =
      java.util.Arrays.equals(bytes, encode(row, ordinal))

    override def decode(bytes: Array[Byte]): Any = {
      val unscaled =
        if (bytes.length == 8) BigInteger.valueOf(toLong(bytes)) else new BigInteger(bytes)
      Decimal(
        new java.math.BigDecimal(unscaled, dataType.scale), dataType.precision, dataType.scale)
    }
  }

  private def ofLong(value: Long): Array[Byte] =
    ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(value).array

  /** Throws unless there are 8 bytes. */
  private def toLong(bytes: Array[Byte]): Long = {
    if (bytes.length != 8) throw new IllegalStateException("a number does not have 8 bytes")
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getLong
  }
}
