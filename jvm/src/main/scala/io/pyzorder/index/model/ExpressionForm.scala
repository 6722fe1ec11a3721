package io.pyzorder.index.model

import java.time.zone.ZoneRulesProvider

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.{Invoke, StaticInvoke}
import org.apache.spark.sql.catalyst.trees.TreeNode
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Describes what an expression computes from the columns of a table. Under the same
 * EvaluationSettings, two expressions with the same form return the same value for the same row. A
 * form contains the class and all arguments of every part of the expression. The arguments include
 * values that Spark sets when it analyzes a query, such as the ANSI mode and the time zone.
 *
 * An expression has no form if it contains anything but Spark's own expressions and plain values.
 * For example, it must not contain user-defined functions, subqueries or lambda functions. An
 * expression that reads settings during evaluation has no form either, because a DataFrame is
 * planned once and may be executed later under different settings. An expression on a whole struct
 * has no form, because whether the struct is null may depend on which of its fields a query reads.
 * For the same reason, an expression on a collection of structs has no form, even if the collection
 * is inside a struct.
 *
 * Some values depend on data that is part of the JVM and may change when the JVM is updated. The
 * form of an expression on timestamps contains the version of the time zone rules. The forms of
 * some functions contain the version of the JVM and the processor architecture. Examples are
 * mathematical functions, whose results may differ in the last digit, and functions that encode or
 * decode text. An expression that depends on a language's words or number format has no form.
 */
object ExpressionForm {

  private val BuiltIn = "org.apache.spark.sql.catalyst.expressions."

  /**
   * The form of an expression that the optimizer has processed; None if the expression has no form.
   *
   * @param schema the columns of the files. Names in the expression must be spelled as in this
   *               schema
   */
  def of(expression: Expression, schema: StructType): Option[String] =
    if (!expression.deterministic) None else form(expression)(schema)

  /**
   * The prefix that the forms of all expressions of the same class share; empty for a struct field.
   */
  def beginning(expression: Expression): String = mirrored(expression) match {
    case _: GetStructField => ""
    case other => nameOf(other) + "("
  }

  /** `b < a` for `a > b`, and `b <= a` for `a >= b`. Both compute the same. */
  private def mirrored(expression: Expression): Expression = expression match {
    case GreaterThan(l, r) => LessThan(r, l)
    case GreaterThanOrEqual(l, r) => LessThanOrEqual(r, l)
    case other => other
  }

  private def form(expression: Expression)(implicit schema: StructType): Option[String] =
    expression match {
      case column: AttributeReference => ofColumn(column)
      // A query may read only some of a struct's fields, so fields are identified by name. A
      // field's type follows from the column's type.
      case GetStructField(child, ordinal, _) =>
        child.dataType match {
          case struct: StructType if !containsStructs(struct(ordinal).dataType) =>
            form(child).flatMap(ofField(_, struct(ordinal)))
          case _ => None
        }
      case Literal(value, dataType) => ofValue(value).map(v => s"$v ${dataType.sql}")
      case cast: Cast if !cast.needsTimeZone => ofClass(cast.copy(timeZoneId = None))
      case other => ofClass(mirrored(other))
    }

  /**
   * The form of a struct field. If a query reads only some paths of a VARIANT, Spark replaces the
   * VARIANT with a struct that has a field for each path. Such a field has the form of the
   * corresponding `variant_get` call.
   */
  private def ofField(struct: String, field: StructField): Option[String] =
    if (!field.metadata.contains(VariantPath)) Some(s"field($struct, ${quoted(field.name)})")
    else {
      val read = field.metadata.getMetadata(VariantPath)
      if (read.contains("castErrorFor")) None
      else ofValue(UTF8String.fromString(read.getString("path"))).map { path =>
        val zone = quoted(read.getString("timeZoneId"))
        s"variant.VariantGet($struct, $path STRING, ${field.dataType.sql}, " +
          s"${read.getBoolean("failOnError")}, some($zone)) in $zoneRules"
      }
    }

  /** The metadata key under which Spark describes a field that represents a path of a VARIANT. */
  private val VariantPath = "__VARIANT_METADATA_KEY"

  /**
   * The form of a column, which contains the column's type and the default for files without the
   * column. A CHAR column has no form, because its values are padded when they are read.
   */
  private def ofColumn(column: AttributeReference)(implicit schema: StructType): Option[String] =
    schema.fields.filter(_.name == column.name) match {
      // A query may read only some fields of a nested column, so the types may differ.
      case Array(field)
          if !IndexedColumns.isChar(field) && !containsStructs(field.dataType) &&
            (field.dataType == column.dataType || !IndexedColumns.supports(field.dataType)) =>
        val default =
          if (!IndexedColumns.hasDefault(field)) ""
          else " default " + quoted(field.metadata.getString(IndexedColumns.ExistsDefault))
        Some(s"${quoted(field.name)} ${field.dataType.sql}$default")
      case _ => None
    }

  /** Whether the type is an array or a map with structs inside. */
  private def containsStructs(dataType: DataType): Boolean = dataType match {
    case array: ArrayType => isOrContainsStruct(array.elementType)
    case map: MapType => isOrContainsStruct(map.keyType) || isOrContainsStruct(map.valueType)
    case _ => false
  }

  private def isOrContainsStruct(dataType: DataType): Boolean =
    dataType.isInstanceOf[StructType] || containsStructs(dataType)

  private def ofClass(expression: Expression)(implicit schema: StructType): Option[String] =
    if (readsSettings(expression) || readsLanguage(expression)) None
    else ofProduct(expression).map(_ + versionFor(expression))

  private def ofProduct(value: Product)(implicit schema: StructType): Option[String] =
    if (!value.getClass.getName.startsWith(BuiltIn)) None
    else list(value.productIterator.toSeq).map(_.mkString(nameOf(value) + "(", ", ", ")"))

  private def nameOf(value: Any): String = value.getClass.getName.stripPrefix(BuiltIn)

  private def readsSettings(expression: Expression): Boolean = expression match {
    case _: TimestampFormatterHelper | _: JsonToStructs | _: CsvToStructs => true
    case _ => false
  }

  /** Whether the value depends on the JVM's locale data. */
  private def readsLanguage(expression: Expression): Boolean = expression match {
    case _: FormatNumber | _: FormatString | _: Sentences => true
    case call: StaticInvoke => call.functionName == "getSentences"
    case other => Set("DayName", "MonthName")(nameOf(other)) // not in Spark 3.5
  }

  /**
   * A suffix with the version of the time zone rules or of the JVM, whichever the value depends on;
   * empty if it depends on neither.
   */
  private def versionFor(expression: Expression): String = expression match {
    case zoned: TimeZoneAwareExpression if zoned.timeZoneId.isDefined => s" in $zoneRules"
    // Such expressions may convert times between time zones, or parse strings that name time zones.
    case timed if (timed +: timed.children).exists(part => isTimestamp(part.dataType)) =>
      s" in $zoneRules"
    case _: UnaryMathExpression | _: BinaryMathExpression => s" on $jvm"
    case _: Encode | _: StringDecode | _: StaticInvoke | _: Invoke => s" on $jvm"
    case other => if (nameOf(other).startsWith("xml.")) s" on $jvm" else ""
  }

  private def isTimestamp(dataType: DataType): Boolean =
    Calendars.isTemporal(dataType) && dataType != DateType

  private def argument(value: Any)(implicit schema: StructType): Option[String] = value match {
    case expression: Expression =>
      if (isOrContainsStruct(expression.dataType)) None else form(expression)
    case dataType: DataType => Some(dataType.sql)
    case Some(inner) => argument(inner).map(text => s"some($text)")
    case None => Some("none")
    case (first, second) => argument(Seq(first, second)) // a branch of CASE
    case several: Seq[_] => list(several).map(_.mkString("[", ", ", "]"))
    case chosen: Enumeration#Value => Some(chosen.toString)
    case builtIn: Class[_] if builtIn.getName.startsWith("org.apache.spark.sql.catalyst.") =>
      Some(builtIn.getName)
    case _: TreeNode[_] => None
    case settings: Product => ofProduct(settings)
    case other => ofValue(other)
  }

  private def list(values: Seq[Any])(implicit schema: StructType): Option[Seq[String]] = {
    val parts = values.map(argument)
    if (parts.forall(_.isDefined)) Some(parts.flatten) else None
  }

  private def ofValue(value: Any): Option[String] = value match {
    case null => Some("null")
    case text: String => Some(quoted(text))
    case text: UTF8String => hex(text.getBytes)
    case bytes: Array[Byte] => hex(bytes)
    case _: java.lang.Number | _: java.lang.Boolean | _: java.lang.Character | _: Decimal =>
      Some(value.toString)
    case _ => None
  }

  private def hex(bytes: Array[Byte]): Option[String] =
    Some(bytes.map(byte => f"$byte%02x").mkString("x'", "", "'"))

  private def quoted(text: String): String = "`" + text.replace("`", "``") + "`"

  /** The version of the time zone rules. */
  private def zoneRules: String = ZoneRulesProvider.getVersions("UTC").lastEntry.getKey

  /** The version of the JVM and the processor architecture. */
  private def jvm: String =
    Seq("java.vm.version", "os.arch").map(System.getProperty(_)).mkString(" ")
}
