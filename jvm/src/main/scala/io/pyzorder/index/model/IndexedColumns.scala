package io.pyzorder.index.model

import java.util.Locale

import org.apache.spark.sql.types._

import io.pyzorder.common.ZOrderErrors

/** Decides which of a table's columns have statistics in the index. */
object IndexedColumns {

  /** The metadata key under which Spark keeps a column's default for files without the column. */
  private[pyzorder] val ExistsDefault = "EXISTS_DEFAULT"

  /** The metadata key under which Spark records that a string is CHAR(n) or VARCHAR(n). */
  private val CharVarchar = "__CHAR_VARCHAR_TYPE_STRING"

  /** Whether values of the type are ordered and their bounds can be stored in the index table. */
  def supports(dataType: DataType): Boolean = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType |
        DateType | TimestampType | TimestampNTZType | BinaryType => true
    case _: DecimalType | _: StringType | _: YearMonthIntervalType | _: DayTimeIntervalType => true
    case other => isTime(other)
  }

  /** Whether the type is TIME(p), which was introduced in Spark 4.1. */
  def isTime(dataType: DataType): Boolean = dataType.typeName.matches("time\\(\\d+\\)")

  /**
   * Whether strings of the type are compared as unsigned bytes. This is the case unless the type
   * has a collation.
   */
  def isBinaryOrdered(string: StringType): Boolean = string == StringType

  /** The first `limit` leaf columns, including struct fields, that can have statistics. */
  def default(schema: StructType, limit: Int): Seq[IndexedColumn] =
    leaves(Nil, schema).take(limit).toList

  /**
   * Resolves names to columns. The result spells the names as the schema does.
   *
   * @param names the names, each already split into its parts by a parser
   * @param table the table's name, used in messages
   * @throws io.pyzorder.common.ZOrderException if a name is unknown, ambiguous or repeated, or if a
   *                                            column has an unsupported type
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
      case Some(fields) =>
        throw (fields.last.dataType match {
          case collection @ (_: ArrayType | _: MapType) =>
            ZOrderErrors.unorderedExpression(shown, collection)
          case other => ZOrderErrors.unsupportedType(shown, other)
        })
      case None => throw ZOrderErrors.unknownColumn(shown, table, schema.fieldNames.toSeq)
    }
  }

  /**
   * The fields along a path, from the column to the leaf; None unless exactly one field matches at
   * each step.
   */
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

  /** Whether the field has a default, which Spark returns for rows in files without the field. */
  private[pyzorder] def hasDefault(field: StructField): Boolean =
    field.metadata.contains(ExistsDefault)

  /** Whether the field is CHAR(n), whose values are padded after the scan. */
  private[pyzorder] def isChar(field: StructField): Boolean =
    field.dataType.typeName.startsWith("char") ||
      field.metadata.contains(CharVarchar) &&
      field.metadata.getString(CharVarchar).toLowerCase(Locale.ROOT).startsWith("char")

  /**
   * The field without the metadata that makes Spark pad CHAR values, also those in nested types,
   * when it reads them. Metadata that contains the field's default is kept.
   */
  private[pyzorder] def asStored(field: StructField): StructField = field.copy(metadata =
    new MetadataBuilder().withMetadata(field.metadata).remove(CharVarchar).build())

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
