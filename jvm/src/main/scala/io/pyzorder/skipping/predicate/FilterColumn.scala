package io.pyzorder.skipping.predicate

import java.time.ZoneId

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference, BoundReference, Expression, GetStructField, PrettyAttribute
}
import org.apache.spark.sql.types._

import io.pyzorder.index.model.IndexedColumn

/**
 * The column side of an index filter: a leaf column, or a function of one that keeps the order.
 *
 * @param path     the column's name, then the names of the struct fields below it
 * @param dataType the type the query reads the column as; an index column of another type does
 *                 not answer for it
 * @param through  what MonotonicFunctions proves to keep the order, of the column as
 *                 BoundReference 0
 * @param zone     `through` keeps it only between values whose days follow each other there
 */
final case class FilterColumn(
    path: Seq[String],
    dataType: DataType,
    through: Option[Expression] = None,
    zone: Option[ZoneId] = None) {

  /** The type that the predicate compares in. */
  def comparedType: DataType = through.fold(dataType)(_.dataType)

  /** The column itself. */
  def plain: FilterColumn = FilterColumn(path, dataType)

  /** Whether values may be NaN, which the bounds of the index leave out. */
  def mayBeNaN: Boolean = FilterColumn.isFloating(comparedType)

  /**
   * Turns a value of the column into the value that the predicate compares. Fails where `through`
   * fails (a date past the last timestamp).
   */
  def convert: Any => Any =
    through.fold[Any => Any](identity)(function => value => function.eval(InternalRow(value)))

  /** Whether `convert` keeps the order of all values between two; one value has any order. */
  def keepsOrder(least: Any, greatest: Any): Boolean = least == greatest || zone.forall { zone =>
    DstDayRepeats.of(zone).inOrder(least.asInstanceOf[Long], greatest.asInstanceOf[Long])
  }

  private[pyzorder] def sql(suffix: String): String = {
    val name = IndexedColumn.nameOf(path) + suffix
    through.fold(name)(_.transform {
      case _: BoundReference => PrettyAttribute(name, dataType)
    }.sql)
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

  /**
   * The column of a data file that the expression names, or keeps the order of; None for all else.
   */
  def unapply(expression: Expression): Option[FilterColumn] = expression match {
    case MonotonicFunctions(FilterColumn(column), zone) => applied(expression, column, zone)
    case other if isOrdered(other.dataType) => pathOf(other).map(FilterColumn(_, other.dataType))
    case _ => None
  }

  /**
   * A function of a column, or of a function of it; two days' orders can't both be looked after.
   */
  private def applied(
      function: Expression,
      column: FilterColumn,
      zone: Option[ZoneId]): Option[FilterColumn] =
    if (zone.isDefined && (column.through.isDefined || column.dataType != TimestampType)) None
    else {
      val of = column.through.getOrElse(BoundReference(0, column.dataType, nullable = true))
      val through = function.mapChildren {
        case FilterColumn(_) => of
        case other => other
      }
      Some(column.copy(through = Some(through), zone = zone.orElse(column.zone)))
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
