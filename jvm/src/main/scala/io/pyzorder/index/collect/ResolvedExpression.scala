package io.pyzorder.index.collect

import java.util.Locale

import scala.util.Try

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, Project, Statistics}
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructField, StructType}

import io.pyzorder.common.{ZOrderErrors, ZOrderException}
import io.pyzorder.index.model.{Calendars, DataFiles, EvaluationSettings, ExpressionColumn}
import io.pyzorder.index.model.{ExpressionForm, IndexedColumn, IndexedColumns}

/**
 * An indexed expression that a session has resolved.
 *
 * @param column the indexed column that contains the values
 * @param value  the expression as it appears in the predicates of optimized plans. Its attributes
 *               are identified by their names. For `explode(array)`, this is the array
 * @param ofElements whether the column contains the elements of `value`, which is an array
 */
private[pyzorder] final case class ResolvedExpression(
    column: IndexedColumn,
    value: Expression,
    ofElements: Boolean) {

  /** The file columns that the expression reads and for which footers can contain statistics. */
  def leaves: Seq[IndexedColumn] =
    value.collect {
      case a: AttributeReference if IndexedColumns.supports(a.dataType) =>
        IndexedColumn(Seq(a.name), a.dataType)
    }.distinct

  /**
   * What a file's footer implies for the expression. The expression is not evaluated for the file
   * if, in one of the columns, a scan might read values that differ from what other readers see.
   * The results depend on settings if the values of a column may depend on settings, or if the
   * expression reads dates or timestamps inside a nested column.
   *
   * @param known what the footer reveals about the leaves
   */
  def answer(known: Map[IndexedColumn, FooterAnswer]): FooterAnswer =
    if (leaves.map(known).contains(FooterAnswer.Unknown)) FooterAnswer.Unknown
    else FooterAnswer.Scan(readsNestedTimes || leaves.exists(leaf =>
      known(leaf) match {
        case FooterAnswer.Scan(dependent) => dependent
        case FooterAnswer.Known(statistics) => statistics.settingsDependent ||
          Calendars.isTemporal(leaf.dataType) && statistics.bounds.isEmpty && !statistics.empty
      }))

  private def readsNestedTimes: Boolean = value.exists {
    case a: AttributeReference => !IndexedColumns.supports(a.dataType) && hasTimes(a.dataType)
    case _ => false
  }

  private def hasTimes(dataType: DataType): Boolean = dataType match {
    case struct: StructType => struct.exists(field => hasTimes(field.dataType))
    case array: ArrayType => hasTimes(array.elementType)
    case map: MapType => hasTimes(map.keyType) || hasTimes(map.valueType)
    case other => Calendars.isTemporal(other)
  }

  /**
   * The expression, bound to rows with the columns `output`.
   *
   * @param inputs maps the name of each column that the expression reads to an element of `output`
   */
  def bound(inputs: Map[String, NamedExpression], output: Seq[Attribute]): Expression =
    BindReferences.bindReference(
      value.transform { case a: AttributeReference => inputs(a.name).toAttribute },
      AttributeSeq(output))
}

private[pyzorder] object ResolvedExpression {

  /** Limits that keep the indexed column's path within the limits of the index format. */
  private val MostInputs = 50
  private val LongestForm = 10000

  /**
   * Resolves an expression from a CREATE SKIPPING INDEX statement or from an index.
   *
   * @param schema the columns that are stored in the files
   * @param table  the table's name, used in messages
   * @throws ZOrderException if the expression cannot be indexed
   */
  def of(
      session: shim.SparkSession,
      schema: StructType,
      text: String,
      table: String): ResolvedExpression = {
    val checks = new ExpressionChecks(text)
    checks.checkText()
    val (value, elements) =
      try {
        val parsed = session.sessionState.sqlParser.parseExpression(text)
        checks.checkParsed(parsed, session.sessionState.conf.resolver, schema, table)
        val collection = exploded(parsed).map(optimized(session, schema, checks, _))
        collection.map(_.dataType) match {
          case Some(ArrayType(element, _)) => (collection.get, Some(element))
          case Some(map: MapType) => throw ZOrderErrors.unorderedExpression(text, map)
          case _ => (optimized(session, schema, checks, parsed), None)
        }
      } catch {
        case refused: ZOrderException => throw refused
        case failure @ (_: ParseException | _: AnalysisException) =>
          throw explained(failure, text)
        case _: StackOverflowError => throw ZOrderErrors.tooLong(text)
      }
    val dataType = elements.getOrElse(value.dataType)
    val inputs = value.references.toSeq.map(_.name).distinct.sorted
    if (inputs.isEmpty || elements.isEmpty && isPath(value)) throw ZOrderErrors.noExpression(text)
    if (!IndexedColumns.supports(dataType)) throw ZOrderErrors.unorderedExpression(text, dataType)
    val form = ExpressionForm.of(if (elements.isDefined) Explode(value) else value, schema)
      .getOrElse(throw ZOrderErrors.unknownParts(text))
    if (inputs.length > MostInputs || form.length > LongestForm) throw ZOrderErrors.tooLong(text)
    val settings = EvaluationSettings.of(session.sessionState.conf)
    ResolvedExpression(
      ExpressionColumn(text, form, settings, inputs).indexed(dataType), value, elements.isDefined)
  }

  /** The argument of `explode`; None if the expression is anything else. */
  private def exploded(parsed: Expression): Option[Expression] = parsed match {
    case call: UnresolvedFunction
        if call.nameParts.map(_.toLowerCase(Locale.ROOT)) == Seq("explode") &&
          !call.isDistinct && call.filter.isEmpty && call.arguments.length == 1 =>
      call.arguments.headOption.filterNot(_.isInstanceOf[NamedArgumentExpression])
    case _ => None
  }

  /** The parsed expression as it appears in an optimized plan. */
  private def optimized(
      session: shim.SparkSession,
      schema: StructType,
      checks: ExpressionChecks,
      parsed: Expression): Expression = {
    val attributes = schema.map(attributeOf)
    val plan = Project(Seq(Alias(parsed, "value")()), FileColumns(attributes))
    val analyzed = shim.dataFrame(session, plan).queryExecution.analyzed
    checks.checkAnalyzed(analyzed)
    // Spark keeps a query's spelling of names, which may differ from the schema's.
    val names = attributes.map(a => a.exprId -> a.name).toMap
    checks.optimized(session, analyzed) match {
      case Project(Seq(Alias(value, _)), _: FileColumns) =>
        value.transform { case a: AttributeReference =>
          a.withName(names.getOrElse(a.exprId, a.name))
        }
      case _ => throw ZOrderErrors.unknownParts(checks.text)
    }
  }

  /**
   * The indexed expressions that this session would evaluate exactly as the index describes. Only
   * these expressions can get statistics.
   */
  def usable(
      session: shim.SparkSession,
      schema: StructType,
      columns: Seq[IndexedColumn]): Seq[ResolvedExpression] = {
    lazy val settings = EvaluationSettings.of(session.sessionState.conf)
    columns.flatMap {
      case column @ ExpressionColumn(expression) if expression.settings == settings =>
        now(session, schema, expression).filter(_.column == column)
      case _ => None
    }
  }

  def usable(
      session: shim.SparkSession,
      data: DataFiles,
      columns: Seq[IndexedColumn]): Seq[ResolvedExpression] =
    usable(
      session, StructType(data.dataSchema.filter(field => data.isFromFiles(field.name))), columns)

  /** The expression as this session evaluates it; None if the session cannot evaluate it. */
  def now(
      session: shim.SparkSession,
      schema: StructType,
      expression: ExpressionColumn): Option[ResolvedExpression] =
    Try(of(session, schema, expression.text, "")).toOption

  private def attributeOf(field: StructField): AttributeReference =
    AttributeReference(field.name, field.dataType, field.nullable, field.metadata)()

  private def isPath(value: Expression): Boolean = value match {
    case _: Attribute => true
    case GetStructField(child, _, _) => isPath(child)
    case _ => false
  }

  private def explained(failure: Throwable, text: String): ZOrderException = {
    val why = failure.getMessage.linesIterator.map(_.trim).find(_.nonEmpty)
    ZOrderErrors.invalidExpression(text.trim, why.getOrElse(failure.toString).stripSuffix("."))
  }
}

/** A relation with the columns of a table's files. It is opaque to the optimizer. */
private final case class FileColumns(output: Seq[Attribute]) extends LeafNode {
  override def computeStats(): Statistics = Statistics(sizeInBytes = 1)
}
