package io.pyzorder.skipping.predicate

import java.time.ZoneId

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference, BoundReference, Expression, GetStructField, PlanExpression, PrettyAttribute,
  PythonUDF
}
import org.apache.spark.sql.types._

import io.pyzorder.index.model.IndexedColumn

/**
 * The column side of an index filter: a leaf column, an indexed expression, or an order-preserving
 * function of one of these.
 *
 * @param path     the column's name, followed by the names of the struct fields below it
 * @param dataType the column's type in the query. The index is not used if it stores the column as
 *                 a different type
 * @param through  a function that preserves order according to MonotonicFunctions. Its column is
 *                 BoundReference 0
 * @param zone     if set, `through` preserves order only between values whose days are in order in
 *                 this zone
 */
final case class FilterColumn(
    path: Seq[String],
    dataType: DataType,
    through: Option[Expression] = None,
    zone: Option[ZoneId] = None) {

  /** The type of the values that the predicate compares. */
  def comparedType: DataType = through.fold(dataType)(_.dataType)

  /** The column itself, without the function. */
  def plain: FilterColumn = FilterColumn(path, dataType)

  /** Whether values may be NaN, which the bounds in the index do not cover. */
  def mayBeNaN: Boolean = FilterColumn.isFloating(comparedType)

  /**
   * Converts a value of the column to the value that the predicate compares. Fails where `through`
   * fails, for example for a date beyond the largest timestamp.
   */
  def convert: Any => Any =
    through.fold[Any => Any](identity)(function => value => function.eval(InternalRow(value)))

  /**
   * Whether `convert` preserves the order of all values from `least` to `greatest`. A single value
   * is always in order.
   */
  def keepsOrder(least: Any, greatest: Any): Boolean = zone.forall { zone =>
    DstDayRepeats.of(zone).inOrder(least.asInstanceOf[Long], greatest.asInstanceOf[Long])
  }

  private[pyzorder] def sql(suffix: String): String = {
    val name = IndexedColumn.labelOf(path) + suffix
    through.fold(name)(_.transform {
      case _: BoundReference => PrettyAttribute(name, dataType)
    }.sql)
  }
}

object FilterColumn {

  private[skipping] def isFloating(dataType: DataType): Boolean =
    dataType == DoubleType || dataType == FloatType

  /** Whether the expression contains a logical or physical subquery. */
  private[skipping] def hasSubquery(expression: Expression): Boolean =
    expression.exists(_.isInstanceOf[PlanExpression[_]])

  /**
   * Whether the expression can be evaluated while a query is planned. Subqueries and Python
   * functions run only when the query is executed.
   */
  private[pyzorder] def isEvaluable(expression: Expression): Boolean =
    expression.deterministic && !hasSubquery(expression) &&
      !expression.exists(_.isInstanceOf[PythonUDF])

  /**
   * Whether all parts of Spark order the values of the type in the same way. The bounds follow that
   * order. Strings qualify only with the binary collation: string types with any other collation
   * are not equal to `StringType`.
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
  private val MetadataColumnKey = "__metadata_col"

  /** Matches a data file's column or an order-preserving function of such a column. */
  def unapply(expression: Expression): Option[FilterColumn] = expression match {
    case MonotonicFunctions(FilterColumn(column), zone) => applied(expression, column, zone)
    case other if isOrdered(other.dataType) => pathOf(other).map(FilterColumn(_, other.dataType))
    case _ => None
  }

  /**
   * Applies a function to `column`, which may already be a function of a column. If the function
   * preserves order only where days are in order, it must be applied directly to a TIMESTAMP
   * column, because the order of days is checked on the column's own bounds.
   */
  private def applied(
      function: Expression,
      column: FilterColumn,
      zone: Option[ZoneId]): Option[FilterColumn] =
    if (zone.isDefined && column.through.isDefined) None
    else {
      val of = column.through.getOrElse(BoundReference(0, column.dataType, nullable = true))
      val through = function.mapChildren {
        case FilterColumn(_) => of
        case other => other
      }
      Some(column.copy(through = Some(through), zone = zone.orElse(column.zone)))
    }

  /**
   * The names from the column down to a field. A field of `_metadata` is not a column of the file,
   * and a column declared as CHAR(n) is padded when it is read. Neither has statistics.
   */
  private def pathOf(expression: Expression): Option[Seq[String]] = expression match {
    case a: AttributeReference if isMetadata(a) || isChar(a) => None
    case a: AttributeReference => Some(Seq(a.name))
    case value: IndexedValue => Some(value.column.path)
    case field: GetStructField =>
      pathOf(field.child).flatMap { path =>
        field.child.dataType match {
          case struct: StructType => Some(path :+ struct(field.ordinal).name)
          case _ => None
        }
      }
    case _ => None
  }

  /** Whether the attribute describes the file, as `_metadata` does, and is no column in it. */
  private[pyzorder] def isMetadata(attribute: AttributeReference): Boolean =
    attribute.metadata.contains(MetadataColumnKey)

  private def isChar(attribute: AttributeReference): Boolean =
    attribute.metadata.contains(CharVarcharKey) &&
      attribute.metadata.getString(CharVarcharKey).toLowerCase(java.util.Locale.ROOT)
        .startsWith("char") // a struct's type string starts with "struct"
}
