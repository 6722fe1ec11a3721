package io.pyzorder.index.collect

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._

import io.pyzorder.index.model.{Calendars, ColumnStatistics, IndexedColumn, IndexedColumns}

/**
 * What a writer knows of the strings or bytes that it wrote into a column.
 *
 * @param bounds the least and the greatest, in the order of their bytes; None: there are none
 */
final case class BytesStatistics(nullCount: Long, bounds: Option[(Array[Byte], Array[Byte])])

/**
 * Takes the statistics of rows as they pass, one row after the other: of those a writer puts into a
 * file, or those a scan reads from it. What it tells are the values it was shown; `written` tells
 * what Spark will read of them.
 *
 * Values too long to keep become bounds that enclose them; see TruncatedBounds.
 *
 * @param columns the columns to track
 * @param schema  the rows' schema, which the columns' paths are spelled after
 * @param isTold  of which top-level columns `tell` will tell the least and greatest strings, so
 *                that their rows need no look
 */
final class StatisticsTracker(
    columns: Seq[IndexedColumn],
    schema: StructType,
    isTold: Int => Boolean = _ => false) {

  private val cells: Array[StatisticsAccumulator] = columns.map { column =>
    val fields = IndexedColumns.fieldsOf(schema, column.path, _ == _).getOrElse(
      throw new IllegalArgumentException(s"no column ${column.name} in ${schema.simpleString}"))
    StatisticsAccumulator.of(fields.last)
  }.toArray

  private val ordinals: Array[Array[Int]] = columns.map(c => ordinalsOf(schema, c.path)).toArray

  /** Number of fields of each struct on the way, for InternalRow.getStruct. */
  private val widths: Array[Array[Int]] = columns.map(c => widthsOf(schema, c.path)).toArray

  private val (told: Array[Int], shown: Array[Int]) = cells.indices.toArray.partition { i =>
    cells(i).isInstanceOf[BytesAccumulator] && ordinals(i).length == 1 && isTold(ordinals(i).head)
  }

  private var rows: Long = 0L

  /** Rows shown so far. */
  def numRecords: Long = rows

  /** Takes note of a row, which may be reused afterwards. */
  def update(row: InternalRow): Unit = {
    rows += 1
    var s = 0
    while (s < shown.length) {
      val i = shown(s)
      val path = ordinals(i)
      var getters: SpecializedGetters = row
      var depth = 0
      while (depth < path.length - 1 && getters != null) {
        getters =
          if (getters.isNullAt(path(depth))) null
          else getters.getStruct(path(depth), widths(i)(depth))
        depth += 1
      }
      if (getters == null || getters.isNullAt(path(depth))) cells(i).nulls += 1
      else cells(i).update(getters, path(depth))
      s += 1
    }
  }

  /** Takes note of all values of the columns that `isTold` named, by their number in the schema. */
  def tell(bytes: Int => BytesStatistics): Unit = told.foreach { i =>
    val known = bytes(ordinals(i).head)
    cells(i).nulls += known.nullCount
    known.bounds.foreach { case (least, greatest) =>
      cells(i).asInstanceOf[BytesAccumulator].take(least)
      cells(i).asInstanceOf[BytesAccumulator].take(greatest)
    }
  }

  /** The statistics of the rows shown, by IndexedColumn.name. */
  def result: Map[String, ColumnStatistics] =
    columns.zip(cells).map { case (column, cell) => column.name -> cell.result }.toMap

  /**
   * The statistics of a file into which Spark wrote the rows shown.
   *
   * Parquet, with rebase mode CORRECTED: every value is read as it was written, under any settings,
   * for the file itself names its calendar and its writer; only TIMESTAMP_MILLIS cuts microseconds
   * down to milliseconds, which keeps order, so the bounds are cut alike. ORC keeps timestamps by
   * the writer's zone and old dates in the hybrid calendar: bounds depend on the settings, and
   * those before both calendars agree are unknown.
   *
   * @param format          "parquet" or "orc"
   * @param timestampMillis the file keeps timestamps in milliseconds
   */
  def written(format: String, timestampMillis: Boolean = false): Map[String, ColumnStatistics] =
    columns.zip(cells).map { case (column, cell) =>
      val known = cell.result
      column.name -> (
        if (format == "orc") Calendars.dependent(known, column.dataType)
        else if (timestampMillis) Calendars.inMillis(known, column.dataType)
        else known)
    }.toMap

  private def ordinalsOf(struct: StructType, path: Seq[String]): Array[Int] = {
    val ordinal = struct.fieldIndex(path.head)
    if (path.length == 1) Array(ordinal)
    else ordinal +: ordinalsOf(struct(ordinal).dataType.asInstanceOf[StructType], path.tail)
  }

  private def widthsOf(struct: StructType, path: Seq[String]): Array[Int] =
    if (path.length == 1) {
      Array.empty
    } else {
      val inner = struct(path.head).dataType.asInstanceOf[StructType]
      inner.length +: widthsOf(inner, path.tail)
    }
}
