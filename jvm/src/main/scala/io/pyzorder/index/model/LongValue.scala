package io.pyzorder.index.model

import org.apache.spark.sql.catalyst.expressions.{SpecializedGetters, UnsafeRow}
import org.apache.spark.sql.types._

/**
 * Reads a value as a long. Unlike a Scala function, this trait does not box the ordinal or the
 * result.
 */
private[index] trait LongValue {
  def apply(row: SpecializedGetters, ordinal: Int): Long
}

private[index] object LongValue {

  /** The reader for a type whose values have at most 64 bits, except FLOAT and DOUBLE. */
  def of(dataType: DataType): LongValue = dataType match {
    case BooleanType => (row, i) => if (row.getBoolean(i)) 1L else 0L
    case ByteType => (row, i) => row.getByte(i).toLong
    case ShortType => (row, i) => row.getShort(i).toLong
    case IntegerType | DateType | _: YearMonthIntervalType => (row, i) => row.getInt(i).toLong
    case LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType =>
      (row, i) => row.getLong(i)
    case d: DecimalType =>
      (row, i) =>
        row match {
          case unsafe: UnsafeRow => unsafe.getLong(i) // avoids allocating an object
          case _ => row.getDecimal(i, d.precision, d.scale).toUnscaledLong
        }
    case time if IndexedColumns.isTime(time) => (row, i) => row.getLong(i)
    case other =>
      throw new IllegalArgumentException(s"type ${other.simpleString} has no statistics")
  }

  /** Converts a long to Catalyst's internal representation. */
  def toCatalyst(value: Long, dataType: DataType): Any = dataType match {
    case BooleanType => value != 0
    case ByteType => value.toByte
    case ShortType => value.toShort
    case IntegerType | DateType | _: YearMonthIntervalType => value.toInt
    case d: DecimalType => Decimal(value, d.precision, d.scale)
    case _ => value
  }
}
