package io.pyzorder.index.store

import java.math.{BigDecimal => JBigDecimal, BigInteger}

import org.apache.parquet.column.ColumnReader
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.pyzorder.index.model.IndexedColumns

/** Converts the bounds in a snapshot's Parquet file to the forms that are kept in memory. */
private[store] object SnapshotBounds {

  /**
   * The maximum length of a bound. Valid bounds of strings have at most TruncatedBounds.MaxBytes
   * bytes plus one character, and z-values have 8 bytes for each of at most
   * ClusteringColumns.MaxColumns columns.
   */
  private val MaxBoundBytes = 1024

  /**
   * The maximum length of an unscaled decimal in bytes. A decimal has at most 38 digits. Arithmetic
   * with millions of digits would take minutes.
   */
  private val MaxDecimalBytes = 16

  /** Reads a bound that BoundArrays stores as a long. */
  def longOf(dataType: DataType): ColumnReader => Long = dataType match {
    case BooleanType => reader => if (reader.getBoolean) 1L else 0L
    case ByteType | ShortType | IntegerType | DateType | _: YearMonthIntervalType =>
      reader => reader.getInteger.toLong
    case d: DecimalType if d.precision <= Decimal.MAX_INT_DIGITS =>
      reader => reader.getInteger.toLong
    case time if IndexedColumns.isTime(time) => reader => reader.getLong * 1000
    case _ => reader => reader.getLong
  }

  /** Reads a bound that BoundArrays stores as a double. */
  def doubleOf(dataType: DataType): ColumnReader => Double =
    if (dataType == FloatType) reader => reader.getFloat.toDouble else reader => reader.getDouble

  /** Reads a bound that BoundArrays stores as an object. */
  def objectOf(dataType: DataType): ColumnReader => AnyRef = dataType match {
    case BinaryType => reader => bound(reader)
    case d: DecimalType =>
      reader => {
        val unscaled = new BigInteger(bound(reader, MaxDecimalBytes))
        Decimal(new JBigDecimal(unscaled, d.scale), d.precision, d.scale)
      }
    case _ => reader => UTF8String.fromBytes(bound(reader))
  }

  private def bound(reader: ColumnReader, most: Int = MaxBoundBytes): Array[Byte] = {
    val value = reader.getBinary
    if (value.length > most)
      throw new IllegalStateException(
        s"a bound of ${value.length} bytes is longer than the limit of $most")
    value.getBytes
  }
}
