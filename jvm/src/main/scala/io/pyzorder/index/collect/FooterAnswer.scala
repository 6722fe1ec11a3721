package io.pyzorder.index.collect

import org.apache.spark.sql.types.{DataType, StructType}

import io.pyzorder.index.model.{ColumnStatistics, IndexedColumn, IndexedColumns}

/** What a footer tells of one column. */
sealed trait FooterAnswer extends Serializable

object FooterAnswer {

  /** These statistics are right, for the reason given beside the rule that gave them. */
  final case class Known(statistics: ColumnStatistics) extends FooterAnswer

  /**
   * The footer does not tell, but Spark can read the column: let it.
   *
   * @param settingsDependent another temporal read setting may read other values
   */
  final case class Scan(settingsDependent: Boolean) extends FooterAnswer

  /** The footer does not tell, and a scan might fail, or tell other readers something wrong. */
  val Unknown: FooterAnswer = Known(ColumnStatistics.unknown)

  /** Every row is null. */
  def allNull(numRecords: Long): FooterAnswer = Known(ColumnStatistics(
      bounds = None,
      exact = false,
      nullCount = Some(numRecords),
      nanSeen = false,
      empty = true,
      settingsDependent = false))

  /** Only the number of nulls, which are not all of the rows. */
  def nullsOnly(nullCount: Long): FooterAnswer =
    Known(ColumnStatistics.unknown.copy(nullCount = Some(nullCount)))

  /** Bounds of the values that are not null, of a type without NaN. */
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
 * One file's footer.
 *
 * @param numRecords rows of the file
 * @param answers    one a column asked for, in their order
 */
final case class FileFooter(numRecords: Long, answers: Array[FooterAnswer])

/**
 * What is asked of footers; goes to the executors.
 *
 * @param caseSensitive  how names are compared
 * @param datetimeRebase the rebase mode of Parquet files that do not tell their calendar
 */
final case class FooterQuestion(
    columns: Array[FooterColumn],
    caseSensitive: Boolean,
    datetimeRebase: String) {

  def sameName(a: String, b: String): Boolean =
    if (caseSensitive) a == b else a.equalsIgnoreCase(b)
}

/**
 * @param isChar     predicates are about padded values
 * @param hasDefault files without the column read as something that depends on the reader
 */
final case class FooterColumn(
    path: Array[String],
    dataType: DataType,
    isChar: Boolean,
    hasDefault: Boolean)

object FooterColumn {

  /** The question about a column of a schema. */
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
