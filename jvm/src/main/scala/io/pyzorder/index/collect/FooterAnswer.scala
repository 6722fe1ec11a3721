package io.pyzorder.index.collect

import org.apache.spark.sql.types.{DataType, StructType}

import io.pyzorder.index.model.{ColumnStatistics, IndexedColumn, IndexedColumns}

/** What a footer reveals about one column. */
sealed trait FooterAnswer extends Serializable

object FooterAnswer {

  /** The statistics are correct. The rule that produced them documents why. */
  final case class Known(statistics: ColumnStatistics) extends FooterAnswer

  /**
   * The footer is not sufficient, but Spark can read the column, so the column should be scanned.
   *
   * @param settingsDependent whether a scan with different temporal settings may read different
   *                          values
   */
  final case class Scan(settingsDependent: Boolean) extends FooterAnswer

  /**
   * The footer is not sufficient, and a scan might fail or read values that differ from what other
   * readers see.
   */
  val Unknown: FooterAnswer = Known(ColumnStatistics.unknown)

  /** The column is null in every row. */
  def allNull(numRecords: Long): FooterAnswer = Known(ColumnStatistics(
      bounds = None,
      exact = false,
      nullCount = Some(numRecords),
      nanSeen = false,
      empty = true,
      settingsDependent = false))

  /** The number of nulls is known, but the bounds are not. At least one value is not null. */
  def nullsOnly(nullCount: Long): FooterAnswer =
    Known(ColumnStatistics.unknown.copy(nullCount = Some(nullCount)))

  /** The bounds of the non-null values. The type must not include NaN. */
  def bounded(
      least: Any,
      greatest: Any,
      exact: Boolean,
      nullCount: Long,
      settingsDependent: Boolean = false): FooterAnswer =
    Known(ColumnStatistics(
        bounds = Some((least, greatest)),
        exact = exact,
        nullCount = Some(nullCount),
        nanSeen = false,
        empty = false,
        settingsDependent = settingsDependent))
}

/**
 * The contents of one file's footer.
 *
 * @param numRecords the number of rows in the file
 * @param answers    one answer for each requested column, in order
 */
final case class FileFooter(numRecords: Long, answers: Array[FooterAnswer])

/**
 * The columns to look up in the footers. This object is sent to the executors.
 *
 * @param caseSensitive whether names are compared case-sensitively
 */
final case class FooterQuestion(columns: Array[FooterColumn], caseSensitive: Boolean) {

  def sameName(a: String, b: String): Boolean =
    if (caseSensitive) a == b else a.equalsIgnoreCase(b)
}

/**
 * @param isChar     whether the column is declared as CHAR, so that predicates apply to padded
 *                   values
 * @param hasDefault whether different readers may read different values from files without the
 *                   column
 */
final case class FooterColumn(
    path: Array[String],
    dataType: DataType,
    isChar: Boolean,
    hasDefault: Boolean)

object FooterColumn {

  /** Describes an indexed column of a schema. */
  def of(schema: StructType, column: IndexedColumn): FooterColumn = {
    val fields = IndexedColumns.fieldsOf(schema, column.path, _ == _).getOrElse(
      throw new IllegalArgumentException(s"no column ${column.name} in ${schema.simpleString}"))
    FooterColumn(
      column.path.toArray,
      column.dataType,
      IndexedColumns.isChar(fields.last),
      fields.exists(IndexedColumns.hasDefault))
  }
}
