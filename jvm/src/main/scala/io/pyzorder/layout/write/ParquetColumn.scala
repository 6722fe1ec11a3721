package io.pyzorder.layout.write

import java.util.Arrays

import org.apache.parquet.column.{ColumnDescriptor, ColumnWriter}
import org.apache.parquet.io.api.Binary
import org.apache.parquet.schema.LogicalTypeAnnotation.{TimeUnit, TimestampLogicalTypeAnnotation}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName._
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform

/** Writes the values of one column from a batch of rows to Parquet. */
private[layout] sealed abstract class ParquetColumn {

  /** Whether the values are strings or binary values. */
  def isBytes: Boolean = false

  /** Writes the value of a row. The value must not be null. */
  def write(rows: RowBatch, row: Int, column: Int, to: ColumnWriter, level: Int): Unit
}

private[layout] object ParquetColumn {

  /**
   * The writer of a top-level column. None if the column's type is not supported here. Spark's
   * writer must then write the file.
   *
   * @param dataType  the column's type in Spark's schema
   * @param described the column as Spark's writer declares it in the file
   */
  def of(dataType: DataType, described: ColumnDescriptor): Option[ParquetColumn] = {
    val primitive = described.getPrimitiveType
    (dataType, primitive.getPrimitiveTypeName) match {
      case (BooleanType, BOOLEAN) => Some(Booleans)
      case (ByteType, INT32) => Some(Bytes)
      case (ShortType, INT32) => Some(Shorts)
      case (IntegerType | DateType | _: YearMonthIntervalType, INT32) => Some(Ints)
      case (LongType | TimestampNTZType | _: DayTimeIntervalType, INT64) => Some(Longs)
      case (FloatType, FLOAT) => Some(Floats)
      case (DoubleType, DOUBLE) => Some(Doubles)
      case (_: StringType | BinaryType, BINARY) => Some(Binaries)
      case (TimestampType, INT64) =>
        primitive.getLogicalTypeAnnotation match {
          case unit: TimestampLogicalTypeAnnotation if unit.getUnit == TimeUnit.MICROS =>
            Some(Longs)
          case unit: TimestampLogicalTypeAnnotation if unit.getUnit == TimeUnit.MILLIS =>
            Some(Millis)
          case _ => None
        }
      case (_: DecimalType, INT32) => Some(DecimalInts)
      case (decimal: DecimalType, INT64) if decimal.precision <= Decimal.MAX_LONG_DIGITS =>
        Some(Longs)
      case (decimal: DecimalType, FIXED_LEN_BYTE_ARRAY)
          if decimal.precision > Decimal.MAX_LONG_DIGITS =>
        Some(new Decimals(primitive.getTypeLength))
      case _ => None
    }
  }

  private object Booleans extends ParquetColumn {
    override def write(rows: RowBatch, row: Int, column: Int, to: ColumnWriter, level: Int): Unit =
      to.write(Platform.getBoolean(rows.array, rows.address(row, column)), 0, level)
  }

  private object Bytes extends ParquetColumn {
    override def write(rows: RowBatch, row: Int, column: Int, to: ColumnWriter, level: Int): Unit =
      to.write(Platform.getByte(rows.array, rows.address(row, column)).toInt, 0, level)
  }

  private object Shorts extends ParquetColumn {
    override def write(rows: RowBatch, row: Int, column: Int, to: ColumnWriter, level: Int): Unit =
      to.write(Platform.getShort(rows.array, rows.address(row, column)).toInt, 0, level)
  }

  private object Ints extends ParquetColumn {
    override def write(rows: RowBatch, row: Int, column: Int, to: ColumnWriter, level: Int): Unit =
      to.write(Platform.getInt(rows.array, rows.address(row, column)), 0, level)
  }

  private object Longs extends ParquetColumn {
    override def write(rows: RowBatch, row: Int, column: Int, to: ColumnWriter, level: Int): Unit =
      to.write(Platform.getLong(rows.array, rows.address(row, column)), 0, level)
  }

  /** Timestamps in microseconds, which are rounded down to milliseconds. */
  private object Millis extends ParquetColumn {
    override def write(
        rows: RowBatch,
        row: Int,
        column: Int,
        to: ColumnWriter,
        level: Int): Unit = {
      val micros = Platform.getLong(rows.array, rows.address(row, column))
      to.write(DateTimeUtils.microsToMillis(micros), 0, level)
    }
  }

  private object Floats extends ParquetColumn {
    override def write(rows: RowBatch, row: Int, column: Int, to: ColumnWriter, level: Int): Unit =
      to.write(Platform.getFloat(rows.array, rows.address(row, column)), 0, level)
  }

  private object Doubles extends ParquetColumn {
    override def write(rows: RowBatch, row: Int, column: Int, to: ColumnWriter, level: Int): Unit =
      to.write(Platform.getDouble(rows.array, rows.address(row, column)), 0, level)
  }

  /** The unscaled values of decimals of up to nine digits, which rows store as longs. */
  private object DecimalInts extends ParquetColumn {
    override def write(rows: RowBatch, row: Int, column: Int, to: ColumnWriter, level: Int): Unit =
      to.write(Platform.getLong(rows.array, rows.address(row, column)).toInt, 0, level)
  }

  /** Strings and binary values. Parquet copies the values that it keeps. */
  private object Binaries extends ParquetColumn {
    override def isBytes: Boolean = true

    override def write(rows: RowBatch, row: Int, column: Int, to: ColumnWriter, level: Int): Unit =
      to.write(
        Binary.fromReusedByteArray(rows.array, rows.begin(row, column), rows.size(row, column)),
        0, level)
  }

  /** The unscaled values of decimals of more than 18 digits, in big-endian two's complement. */
  private final class Decimals(width: Int) extends ParquetColumn {
    private val padded = new Array[Byte](width)

    override def write(
        rows: RowBatch,
        row: Int,
        column: Int,
        to: ColumnWriter,
        level: Int): Unit = {
      val begin = rows.begin(row, column)
      val size = rows.size(row, column)
      Arrays.fill(padded, 0, width - size, (if (rows.array(begin) < 0) -1 else 0).toByte)
      System.arraycopy(rows.array, begin, padded, width - size, size)
      to.write(Binary.fromReusedByteArray(padded), 0, level)
    }
  }
}
