package io.pyzorder.index.model

import java.util.Locale

import org.apache.spark.sql.types._

import io.pyzorder.common.ZOrderErrors

/** Which columns of a table the index keeps statistics of. */
object IndexedColumns {

  /** The metadata under which Spark keeps what files without the column read as. */
  private[pyzorder] val ExistsDefault = "EXISTS_DEFAULT"

  /** The metadata under which Spark keeps that a string is CHAR(n) or VARCHAR(n). */
  private val CharVarchar = "__CHAR_VARCHAR_TYPE_STRING"

  /** Types whose values have an order, and bounds that the index table can hold. */
  def supports(dataType: DataType): Boolean = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType |
        DateType | TimestampType | TimestampNTZType | BinaryType => true
    case _: DecimalType | _: StringType | _: YearMonthIntervalType | _: DayTimeIntervalType => true
    case other => isTime(other)
  }

  /** TIME(p), which the oldest Spark served does not have. */
  def isTime(dataType: DataType): Boolean = dataType.typeName.matches("time\\(\\d+\\)")

  /** Strings that compare as unsigned bytes; of others byte order says nothing. */
  def isBinaryOrdered(string: StringType): Boolean = string == StringType

  /**
   * The first `limit` leaf columns of a schema that can have statistics, struct fields included.
   */
  def default(schema: StructType, limit: Int): Seq[IndexedColumn] =
    leaves(Nil, schema).take(limit).toList

  /**
   * The columns of these names, spelled as the schema spells them.
   *
   * @param names parts of each name, as a parser splits them
   * @param table how messages call the table
   * @throws ZOrderException unknownColumn, ambiguousColumn, unsupportedType, duplicateColumn
   */
  def resolve(
      schema: StructType,
      names: Seq[Seq[String]],
      table: String,
      caseSensitive: Boolean): Seq[IndexedColumn] = {
    val resolved = names.map(resolveOne(schema, _, table, caseSensitive))
    resolved.foreach { column =>
      if (resolved.count(_ == column) > 1) throw ZOrderErrors.duplicateColumn(column.name)
    }
    resolved
  }

  private def resolveOne(
      schema: StructType,
      name: Seq[String],
      table: String,
      caseSensitive: Boolean): IndexedColumn = {
    def same(a: String, b: String): Boolean = if (caseSensitive) a == b else a.equalsIgnoreCase(b)
    val shown = IndexedColumn.nameOf(name)
    val heads = schema.fieldNames.filter(same(_, name.head))
    if (heads.length > 1) throw ZOrderErrors.ambiguousColumn(shown, table, heads.toSeq)
    fieldsOf(schema, name, same) match {
      case Some(fields) if supports(fields.last.dataType) =>
        IndexedColumn(fields.map(_.name), fields.last.dataType)
      case Some(fields) => throw ZOrderErrors.unsupportedType(shown, fields.last.dataType)
      case None => throw ZOrderErrors.unknownColumn(shown, table, schema.fieldNames.toSeq)
    }
  }

  /** The fields along a path, from the column to the leaf; None: no such path, or not only one. */
  private[pyzorder] def fieldsOf(
      schema: StructType,
      path: Seq[String],
      same: (String, String) => Boolean): Option[List[StructField]] =
    schema.fields.filter(field => path.nonEmpty && same(field.name, path.head)) match {
      case Array(field) if path.length == 1 => Some(field :: Nil)
      case Array(field) =>
        field.dataType match {
          case inner: StructType => fieldsOf(inner, path.tail, same).map(field :: _)
          case _ => None
        }
      case _ => None
    }

  /** Files without this field read as something else than null. */
  private[pyzorder] def hasDefault(field: StructField): Boolean =
    field.metadata.contains(ExistsDefault)

  /** The field is CHAR(n): its values are padded after the scan. */
  private[pyzorder] def isChar(field: StructField): Boolean =
    field.dataType.typeName.startsWith("char") ||
      field.metadata.contains(CharVarchar) &&
      field.metadata.getString(CharVarchar).toLowerCase(Locale.ROOT).startsWith("char")

  private def leaves(prefix: Seq[String], schema: StructType): Iterator[IndexedColumn] =
    schema.fields.iterator.flatMap { field =>
      val path = prefix :+ field.name
      field.dataType match {
        case inner: StructType => leaves(path, inner)
        case leaf if supports(leaf) => Iterator(IndexedColumn(path, leaf))
        case _ => Iterator.empty
      }
    }
}
