package io.pyzorder.index.sketch

import java.math.RoundingMode

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, SpecializedGetters, XXH64}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform

import io.pyzorder.index.model.{IndexedColumns, LongValue}

/**
 * Hashes the values of one type. Values that Spark considers equal have equal hashes. The hash is
 * XXH64 with seed 0. Its input consists of the following bytes:
 * - For numbers, dates, timestamps and intervals: 8 little-endian bytes. FLOAT is widened to
 *   DOUBLE, -0.0 becomes 0.0, and a decimal is represented by its unscaled value.
 * - For strings and binary values: the value's own bytes.
 * - For decimals whose unscaled value does not fit in 8 bytes: the bytes of the unscaled value.
 */
abstract class ValueHash extends Serializable {

  /** The hash of a non-null value. */
  def apply(row: SpecializedGetters, ordinal: Int): Long
}

object ValueHash {

  private[sketch] val Seed = 0L

  /**
   * The hash function for a type. None if equal values may have different bytes, as under a
   * collation, or if the type has too few values for a sketch to be useful.
   */
  def of(dataType: DataType): Option[ValueHash] = dataType match {
    case BooleanType => None
    case StringType => Some(Strings)
    case _: StringType => None
    case BinaryType => Some(Binaries)
    case FloatType => Some(Floats)
    case DoubleType => Some(Doubles)
    case d: DecimalType => Some(new Decimals(d))
    case other if IndexedColumns.supports(other) => Some(new Longs(other))
    case _ => None
  }

  /**
   * The hash of a literal that is compared with a column of this type. The literal has the same
   * type, except that a decimal may have any scale. None if no value of the column's type equals
   * the literal.
   */
  def ofLiteral(value: Any, dataType: DataType, hash: ValueHash): Option[Long] =
    ((value, dataType) match {
      case (decimal: Decimal, d: DecimalType) =>
        Try(decimal.toJavaBigDecimal.setScale(d.scale, RoundingMode.UNNECESSARY)).toOption
          .filter(_.precision <= d.precision).map(Decimal(_, d.precision, d.scale))
      case _ => Some(value)
    }).map(exact => hash(new GenericInternalRow(Array[Any](exact)), 0))

  private def ofDouble(value: Double): Long =
    XXH64.hashLong(java.lang.Double.doubleToLongBits(if (value == 0.0) 0.0 else value), Seed)

  private def ofBytes(base: AnyRef, offset: Long, length: Int): Long =
    XXH64.hashUnsafeBytes(base, offset, length, Seed)

  private def ofBytes(bytes: Array[Byte]): Long =
    ofBytes(bytes, Platform.BYTE_ARRAY_OFFSET.toLong, bytes.length)

  private object Strings extends ValueHash {
    override def apply(row: SpecializedGetters, ordinal: Int): Long = {
      val value = row.getUTF8String(ordinal)
      ofBytes(value.getBaseObject, value.getBaseOffset, value.numBytes)
    }
  }

  private object Binaries extends ValueHash {
    override def apply(row: SpecializedGetters, ordinal: Int): Long =
      ofBytes(row.getBinary(ordinal))
  }

  private object Floats extends ValueHash {
    override def apply(row: SpecializedGetters, ordinal: Int): Long =
      ofDouble(row.getFloat(ordinal).toDouble)
  }

  private object Doubles extends ValueHash {
    override def apply(row: SpecializedGetters, ordinal: Int): Long =
      ofDouble(row.getDouble(ordinal))
  }

  private final class Longs(dataType: DataType) extends ValueHash {
    @transient private lazy val value = LongValue.of(dataType)

    override def apply(row: SpecializedGetters, ordinal: Int): Long =
      XXH64.hashLong(value(row, ordinal), Seed)
  }

  /**
   * Hashes decimals. If a decimal's unscaled value fits in 64 bits, its hash does not depend on the
   * type's precision.
   */
  private final class Decimals(dataType: DecimalType) extends ValueHash {
    @transient private lazy val short: LongValue =
      if (dataType.precision <= Decimal.MAX_LONG_DIGITS) LongValue.of(dataType) else null

    override def apply(row: SpecializedGetters, ordinal: Int): Long =
      if (short != null) XXH64.hashLong(short(row, ordinal), Seed)
      else {
        val unscaled = row.getDecimal(ordinal, dataType.precision, dataType.scale)
          .toJavaBigDecimal.setScale(dataType.scale, RoundingMode.HALF_UP).unscaledValue
        if (unscaled.bitLength < 64) XXH64.hashLong(unscaled.longValue, Seed)
        else ofBytes(unscaled.toByteArray)
      }
  }
}
