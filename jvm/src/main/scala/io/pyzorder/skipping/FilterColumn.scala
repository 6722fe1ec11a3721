package io.pyzorder.skipping

import io.pyzorder.index.IndexedColumn

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, BoundReference, Cast}
import org.apache.spark.sql.catalyst.expressions.{Expression, GetStructField}
import org.apache.spark.sql.types._

/**
 * The column side of an index filter: a leaf column, or a widening cast of one.
 *
 * @param path     the column's name, then the names of the struct fields below it
 * @param dataType the type the query reads the column as; an index column of another type does
 *                 not answer for it
 * @param cast     a cast around the column that WideningCast has proved to keep the order
 */
final case class FilterColumn(path: Seq[String], dataType: DataType, cast: Option[Cast] = None) {

  /** The type that the predicate compares in. */
  def comparedType: DataType = cast.fold(dataType)(_.dataType)

  /** Whether values may be NaN, which the bounds of the index leave out. */
  def mayBeNaN: Boolean = FilterColumn.isFloating(comparedType)

  /**
   * Turns a value of the column into the value that the predicate compares. Fails where the cast
   * fails (a date past the last timestamp).
   */
  def convert: Any => Any = cast match {
    case None => identity
    case Some(c) =>
      val bound = c.copy(child = BoundReference(0, dataType, nullable = true))
      value => bound.eval(InternalRow(value))
  }

  private[skipping] def sql(suffix: String): String = {
    val name = IndexedColumn.nameOf(path) + suffix
    cast.fold(name)(c => s"CAST($name AS ${c.dataType.sql})")
  }
}

object FilterColumn {

  private[skipping] def isFloating(dataType: DataType): Boolean =
    dataType == DoubleType || dataType == FloatType

  /**
   * Whether values of the type have one order for all of Spark: the order bounds are taken in.
   * Strings only under the binary collation: `StringType` equals no other collation's type.
   */
  def isOrdered(dataType: DataType): Boolean = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType => true
    case FloatType | DoubleType | _: DecimalType => true
    case DateType | TimestampType | TimestampNTZType => true
    case _: YearMonthIntervalType | _: DayTimeIntervalType => true
    case BinaryType => true
    case other => other == StringType || other.typeName.startsWith("time(")
  }

  private val CharVarcharKey = "__CHAR_VARCHAR_TYPE_STRING"
  private val MetadataColumnKeys = Seq("__metadata_col", "__file_source_metadata_col")

  /** The column of a data file that the expression names or widens; None for all else. */
  def unapply(expression: Expression): Option[FilterColumn] = expression match {
    case cast: Cast if cast.child.resolved =>
      pathOf(cast.child) match {
        case Some(path) if WideningCast.keepsOrder(cast.child.dataType, cast.dataType) =>
          Some(FilterColumn(path, cast.child.dataType, Some(cast)))
        case _ => None
      }
    case other if isOrdered(other.dataType) => pathOf(other).map(FilterColumn(_, other.dataType))
    case _ => None
  }

  /**
   * Names from the column down to a field. A column of `_metadata` is no column of the file, and
   * one declared CHAR(n) is padded on reading: neither has statistics.
   */
  private def pathOf(expression: Expression): Option[Seq[String]] = expression match {
    case a: AttributeReference
        if MetadataColumnKeys.exists(a.metadata.contains) || isChar(a) => None
    case a: AttributeReference => Some(Seq(a.name))
    case field: GetStructField =>
      pathOf(field.child).flatMap { path =>
        field.child.dataType match {
          case struct: StructType => Some(path :+ struct(field.ordinal).name)
          case _ => None
        }
      }
    case _ => None
  }

  private def isChar(attribute: AttributeReference): Boolean =
    attribute.metadata.contains(CharVarcharKey) &&
      attribute.metadata.getString(CharVarcharKey).toLowerCase(java.util.Locale.ROOT)
        .startsWith("char") // of a struct: its text starts with "struct"
}
