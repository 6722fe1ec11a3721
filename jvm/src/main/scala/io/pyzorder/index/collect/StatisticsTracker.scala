package io.pyzorder.index.collect

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._

import io.pyzorder.index.model.{Calendars, ColumnStatistics, IndexedColumn, IndexedColumns}
import io.pyzorder.index.sketch.{ColumnSketch, DistinctHashes, ValueBytes, ValueHash}

/**
 * A writer's statistics for the string or binary values that it wrote to a column.
 *
 * @param bounds the minimum and maximum in byte order, or None if there are no values
 */
final case class BytesStatistics(nullCount: Long, bounds: Option[(Array[Byte], Array[Byte])])

/**
 * Collects the statistics of rows while they are written to or read from a file. `result` describes
 * the values that were passed in, and `written` describes the values that Spark will read from the
 * file.
 *
 * Bounds that are too long to store are shortened so that they still enclose all values; see
 * TruncatedBounds.
 *
 * @param columns      the columns to track
 * @param schema       the schema of the rows, in which names are spelled as in the columns' paths
 * @param isFromWriter selects the top-level columns whose statistics the writer provides (see
 *                     `addFromWriter`). The values of these columns are not inspected row by row
 * @param sketched     the columns whose values are also hashed for sketches
 * @param ofElements   the positions of columns whose values are arrays in the rows. Their
 *                     statistics describe the arrays' elements. A row whose array has no non-null
 *                     element counts as a null
 */
final class StatisticsTracker(
    columns: Seq[IndexedColumn],
    schema: StructType,
    isFromWriter: Int => Boolean = _ => false,
    sketched: SketchedColumns = SketchedColumns.None,
    ofElements: Int => Boolean = _ => false) {

  private val fields: Array[StructField] = columns.zipWithIndex.map { case (column, i) =>
    val path = IndexedColumns.fieldsOf(schema, column.path, _ == _).getOrElse(
      throw new IllegalArgumentException(s"no column ${column.name} in ${schema.simpleString}"))
    if (ofElements(i)) path.last.copy(dataType = column.dataType) else path.last
  }.toArray

  private val cells: Array[StatisticsAccumulator] = fields.map(StatisticsAccumulator.of)

  private val ordinals: Array[Array[Int]] = columns.map(c => ordinalsOf(schema, c.path)).toArray

  /**
   * For each column, the number of fields in each struct along the column's path.
   * InternalRow.getStruct requires these numbers.
   */
  private val widths: Array[Array[Int]] = columns.map(c => widthsOf(schema, c.path)).toArray

  /** For each column, whether its statistics come from the writer. */
  private val fromWriter: Array[Boolean] = cells.indices.map { i =>
    cells(i).isInstanceOf[BytesAccumulator] && ordinals(i).length == 1 &&
    isFromWriter(ordinals(i).head)
  }.toArray

  /** The hashes of each column's values; null if they are not collected. */
  private val hashes: Array[DistinctHashes] = columns.zipWithIndex.map { case (column, i) =>
    val hash =
      if (!sketched.names(column.name) || cells(i).isInstanceOf[NullsAccumulator] ||
        fields(i).dataType != column.dataType) None
      else ValueHash.of(column.dataType)
    hash.map(new DistinctHashes(
        _, sketched.hashesPerColumn, ValueBytes.of(column.dataType))).orNull
  }.toArray

  private val areElements: Array[Boolean] = cells.indices.map(ofElements).toArray

  private val inspected: Array[Int] =
    cells.indices.filter(i => !fromWriter(i) || hashes(i) != null).toArray

  private var rows: Long = 0L

  /** The number of rows so far. */
  def numRecords: Long = rows

  /** Adds a row. The caller may reuse the row afterwards. */
  def update(row: InternalRow): Unit = {
    rows += 1
    var s = 0
    while (s < inspected.length) {
      val i = inspected(s)
      val path = ordinals(i)
      var getters: SpecializedGetters = row
      var depth = 0
      while (depth < path.length - 1 && getters != null) {
        getters =
          if (getters.isNullAt(path(depth))) null
          else getters.getStruct(path(depth), widths(i)(depth))
        depth += 1
      }
      if (getters == null || getters.isNullAt(path(depth))) {
        if (!fromWriter(i)) cells(i).nulls += 1
      } else if (areElements(i)) {
        addElements(i, getters.getArray(path(depth)))
      } else {
        if (!fromWriter(i)) cells(i).update(getters, path(depth))
        if (hashes(i) != null) hashes(i).add(getters, path(depth))
      }
      s += 1
    }
  }

  private def addElements(column: Int, array: ArrayData): Unit = {
    var found = false
    (0 until array.numElements).foreach { i =>
      if (!array.isNullAt(i)) {
        found = true
        cells(column).update(array, i)
        if (hashes(column) != null) hashes(column).add(array, i)
      }
    }
    if (!found) cells(column).nulls += 1
  }

  /**
   * Adds the writer's statistics for the columns that `isFromWriter` selects. `bytes` returns the
   * statistics for the column at a given position in the schema.
   */
  def addFromWriter(bytes: Int => BytesStatistics): Unit =
    cells.indices.filter(i => fromWriter(i)).foreach { i =>
      val known = bytes(ordinals(i).head)
      cells(i).nulls += known.nullCount
      known.bounds.foreach { case (least, greatest) =>
        cells(i).asInstanceOf[BytesAccumulator].take(least)
        cells(i).asInstanceOf[BytesAccumulator].take(greatest)
      }
    }

  /** The statistics of the rows so far, keyed by IndexedColumn.name. */
  def result: Map[String, ColumnStatistics] =
    columns.zip(cells).map { case (column, cell) => column.name -> cell.result }.toMap

  /**
   * The sketch of each column, keyed by IndexedColumn.name. Columns with too many distinct values
   * are left out. Frees the memory in which the hashes were collected, so hashes of rows
   * that are added afterwards are lost.
   *
   * @param fileSize the size of the rows' file, if it is known. Sketches within the file's budget
   *                 need not be truncated by the driver
   */
  def sketches(fileSize: Option[Long]): Map[String, ColumnSketch] = {
    val most = sketched.bytesPerColumn(fileSize)
    val found = for {
      (column, i) <- columns.zipWithIndex if hashes(i) != null
      sketch <- ColumnSketch.of(hashes(i), most)
    } yield column.name -> sketch
    hashes.indices.foreach(hashes(_) = null)
    found.toMap
  }

  /**
   * Like `sketches`, but for a file that Spark itself wrote from these rows. TIMESTAMP columns that
   * are stored in milliseconds have no sketch, because the values that Spark reads from the file
   * may differ from the values in the rows.
   */
  def writtenSketches(
      timestampMillis: Boolean,
      fileSize: Option[Long] = None): Map[String, ColumnSketch] =
    sketches(fileSize).filterNot { case (name, _) =>
      timestampMillis && columns.exists(c => c.name == name && c.dataType == TimestampType)
    }

  /**
   * The statistics of a file that Spark wrote from these rows.
   *
   * Parquet files written with the rebase mode CORRECTED record their calendar and their writer, so
   * scans with any settings read every value as it was written. The one exception is
   * TIMESTAMP_MILLIS, which truncates microseconds to milliseconds. Truncation preserves order, so
   * truncating the bounds is correct. ORC stores timestamps in the writer's time zone and old dates
   * in the hybrid calendar. The bounds for ORC are therefore valid only for scans with the same
   * settings. Bounds before the point from which the hybrid and the proleptic Gregorian calendars
   * agree are dropped.
   *
   * @param format          "parquet" or "orc"
   * @param timestampMillis whether the file stores timestamps in milliseconds
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
