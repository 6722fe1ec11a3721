package io.pyzorder.layout.write

import java.util.Arrays

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.bitset.BitSetMethods

/**
 * Rows in one contiguous array, to be read column by column.
 *
 * @param columns number of columns of each row
 */
private[layout] final class RowBatch(columns: Int) {
  import RowBatch._

  private var rows = new Array[Byte](BytesAtFirst)

  /** The address of each row in `rows`, followed by the end address of the last row. */
  private val starts = {
    val starts = new Array[Long](MaxRows + 1)
    starts(0) = Platform.BYTE_ARRAY_OFFSET.toLong
    starts
  }

  private val nullBits = UnsafeRow.calculateBitSetWidthInBytes(columns)

  private var count = 0

  /** The number of rows added since the last `clear`. */
  def length: Int = count

  def isFull: Boolean = count == MaxRows || starts(count) >= MaxBytes

  /** Copies a row. */
  def add(row: UnsafeRow): Unit = {
    val start = starts(count)
    val end = start + row.getSizeInBytes
    val needed = Math.toIntExact(end - Platform.BYTE_ARRAY_OFFSET)
    if (needed > rows.length) rows = Arrays.copyOf(rows, math.max(needed, 2 * rows.length))
    Platform.copyMemory(row.getBaseObject, row.getBaseOffset, rows, start, row.getSizeInBytes)
    count += 1
    starts(count) = end
  }

  def clear(): Unit = count = 0

  /** The array that contains all rows. `add` may replace it. */
  def array: Array[Byte] = rows

  def isNull(row: Int, column: Int): Boolean = BitSetMethods.isSet(rows, starts(row), column)

  /**
   * The address in `array` of a fixed-length value of up to eight bytes. For any other value, this
   * is the address of its offset and size.
   */
  def address(row: Int, column: Int): Long = starts(row) + nullBits + 8L * column

  /** The index in `array` of the first byte of a variable-length value. */
  def begin(row: Int, column: Int): Int =
    (starts(row) - Platform.BYTE_ARRAY_OFFSET).toInt +
      (Platform.getLong(rows, address(row, column)) >>> 32).toInt

  /** The number of bytes of a variable-length value. */
  def size(row: Int, column: Int): Int = Platform.getLong(rows, address(row, column)).toInt
}

private[layout] object RowBatch {

  /**
   * The maximum number of rows in a batch. It is a divisor of 20,000, Parquet's default limit on
   * the number of rows in a page.
   */
  private val MaxRows = 1000

  private val BytesAtFirst = 1 << 18

  /** The size in bytes at which the batch is full. A single row may be far larger. */
  private val MaxBytes = 1 << 20
}
