package io.pyzorder.index.model

import org.apache.spark.sql.types._

/** The columns of the index table. See sql/FORMAT.md, section "Index table". */
object IndexSchema {

  val Path: String = "path"
  val Size: String = "size"
  val ModificationTime: String = "modification_time"
  val NumRecords: String = "num_records"
  val ClusteredBy: String = "clustered_by"
  val ReadSettings: String = "read_settings"
  val SketchFile: String = "sketch_file"
  val SketchNumber: String = "sketch_number"

  /** The columns that describe a file, regardless of which columns are indexed. */
  val fileFields: Seq[StructField] = Seq(
    StructField(Path, StringType, nullable = false),
    StructField(Size, LongType, nullable = false),
    StructField(ModificationTime, LongType, nullable = false),
    StructField(NumRecords, LongType, nullable = false),
    StructField(ClusteredBy, ArrayType(StringType, containsNull = false), nullable = false),
    StructField(ReadSettings, StringType, nullable = false),
    StructField(SketchFile, StringType),
    StructField(SketchNumber, IntegerType))

  def minValue(column: IndexedColumn): String = column.name + "_minValue"
  def maxValue(column: IndexedColumn): String = column.name + "_maxValue"
  def numNulls(column: IndexedColumn): String = column.name + "_num_nulls"
  def nanSeen(column: IndexedColumn): String = column.name + "_nan_seen"
  def exact(column: IndexedColumn): String = column.name + "_exact"
  def empty(column: IndexedColumn): String = column.name + "_empty"
  def settingsDependent(column: IndexedColumn): String = column.name + "_settings_dependent"

  /**
   * Whether the type includes NaN. Only indexed columns of such a type have a `nan_seen` column.
   */
  def hasNan(dataType: DataType): Boolean = dataType == FloatType || dataType == DoubleType

  /**
   * The columns of the index table that contain the statistics of one indexed column. Their names
   * never collide with those of another indexed column's statistics.
   */
  def columnFields(column: IndexedColumn): Seq[StructField] = {
    val nan =
      if (hasNan(column.dataType)) Seq(StructField(nanSeen(column), BooleanType, nullable = false))
      else Nil
    Seq(
      StructField(minValue(column), column.dataType),
      StructField(maxValue(column), column.dataType),
      StructField(numNulls(column), LongType)) ++ nan ++ Seq(
      StructField(exact(column), BooleanType, nullable = false),
      StructField(empty(column), BooleanType, nullable = false),
      StructField(settingsDependent(column), BooleanType, nullable = false))
  }

  /** The schema of a snapshot with the statistics of `columns`. */
  def of(columns: Seq[IndexedColumn]): StructType =
    StructType((fileFields ++ columns.flatMap(columnFields)).toArray)
}
