package io.pyzorder.index.collect

import java.util.Locale

import scala.util.matching.Regex

import org.apache.spark.sql.catalyst.analysis.{FunctionRegistry, UnresolvedAttribute}
import org.apache.spark.sql.catalyst.analysis.{UnresolvedExtractValue, UnresolvedFunction}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Generate, LogicalPlan, Window}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

import io.pyzorder.common.ZOrderErrors

/**
 * The checks that an expression of an index passes before the next step of its resolution. The text
 * may come from a forged index, which any writer to the table's folder can create. Its resolution
 * must therefore neither take long, nor read files, nor run a user's code.
 *
 *   - Spark's parser takes long for nested parentheses, so the text is short and has few of them.
 *   - The analyzer looks up functions, reads the tables of subqueries and computes some constants.
 *     The parsed expression may therefore contain only columns of the table, literals, and Spark's
 *     own functions of columns.
 *   - The optimizer computes the parts that do not depend on a row. `optimized` does this only for
 *     parts that are certainly cheap.
 *
 * @param text the expression
 */
private[collect] final class ExpressionChecks(text: String) {

  import ExpressionChecks._

  /** Throws if the text is too long or too deeply nested for the parser. */
  def checkText(): Unit = {
    def has(more: Int, parts: Regex): Boolean = parts.findAllIn(text).length > more
    if (text.length > LongestText) throw ZOrderErrors.tooLong(text.take(100) + "…")
    // Each word or sign adds at most one level to the tree.
    if (has(MostWords, Word) || has(MostOpenings, Opening)) throw ZOrderErrors.tooLong(text)
  }

  /**
   * Throws if the analyzer might take long, read files or run a user's code.
   *
   * @param isSame whether the session treats two names of columns as the same
   */
  def checkParsed(
      parsed: Expression,
      isSame: (String, String) => Boolean,
      schema: StructType,
      table: String): Unit = {
    if (left(MostNodes, parsed) == 0 || calls(parsed) > DeepestCalls)
      throw ZOrderErrors.tooLong(text)
    def has(test: Expression => Boolean): Boolean = parsed.exists(test)
    if (has(_.isInstanceOf[SubqueryExpression])) throw ZOrderErrors.severalRows(text)
    if (has(isForeign)) throw ZOrderErrors.userFunction(text)
    val columns = parsed.collect { case column: UnresolvedAttribute => column.nameParts }
    columns.find(name => !schema.exists(field => isSame(field.name, name.head))).foreach(name =>
      throw ZOrderErrors.unknownColumn(name.mkString("."), table, schema.fieldNames.toSeq))
    if (has(isUnknown)) throw ZOrderErrors.unknownParts(text)
    if (has(part => !isCheap(part) && !readsColumn(part))) {
      if (columns.isEmpty) throw ZOrderErrors.noExpression(text)
      throw ZOrderErrors.unknownParts(text)
    }
  }

  /** Throws if the expression needs more than the columns of one row. */
  def checkAnalyzed(analyzed: LogicalPlan): Unit = {
    val parts = expressions(analyzed)
    def has(test: Expression => Boolean): Boolean = parts.exists(_.exists(test))
    val isOfSeveral = analyzed.exists {
      case _: Aggregate | _: Window | _: Generate => true
      case _ => false
    }
    if (isOfSeveral || has(_.isInstanceOf[SubqueryExpression])) throw ZOrderErrors.severalRows(text)
    if (has(_.isInstanceOf[UserDefinedExpression])) throw ZOrderErrors.userFunction(text)
    if (has(!_.deterministic) || has(part => isOfQuery(part) && part.foldable))
      throw ZOrderErrors.notDeterministic(text)
    if (has(isOfQuery) || has(isCostly)) throw ZOrderErrors.unknownParts(text)
  }

  /**
   * The plan that the optimizer makes of an analyzed plan. It is reached by applying the optimizer
   * without ConstantFolding, and ConstantFolding to cheap constants, in turns.
   */
  def optimized(session: shim.SparkSession, analyzed: LogicalPlan): LogicalPlan = {
    val conf = session.sessionState.conf.clone()
    val excluded = conf.optimizerExcludedRules.toSeq :+ ConstantFolding.ruleName
    conf.setConfString(SQLConf.OPTIMIZER_EXCLUDED_RULES.key, excluded.mkString(","))
    def next(plan: LogicalPlan): LogicalPlan = {
      if (!constants(plan).forall(isCheap)) throw ZOrderErrors.unknownParts(text)
      session.sessionState.optimizer.execute(ConstantFolding(plan))
    }
    SQLConf.withExistingConf(conf) {
      Iterator.iterate(next(analyzed))(next).take(MostRounds).find(constants(_).isEmpty)
        .getOrElse(throw ZOrderErrors.unknownParts(text))
    }
  }
}

private[collect] object ExpressionChecks {

  private val LongestText = 1000

  private val MostWords = 300
  private val Word = raw"\w+|[^\w\s]".r

  /** How many brackets may open. Those in strings count, too, so the parser sees no more. */
  private val MostOpenings = 30
  private val Opening = raw"(?i)[(\[{]|\bcase\b".r

  /**
   * Spark repeats operands, such as the one of CASE for every WHEN, and the arguments of some
   * functions, so the tree of a short text may be large.
   */
  private val MostNodes = 1000
  private val DeepestCalls = 8

  /** How often the optimizer may be applied before all constants have been computed. */
  private val MostRounds = 5

  /** Spark's own functions, without those that call or load other code, or read files. */
  private val Functions: Set[String] = FunctionRegistry.functionSet.map(_.funcName) -- Seq(
    "java_method", "reflect", "try_reflect", "from_avro", "to_avro", "schema_of_avro",
    "from_protobuf", "to_protobuf")

  private def expressions(plan: LogicalPlan): Seq[Expression] =
    plan.collect { case node => node.expressions }.flatten

  private def constants(plan: LogicalPlan): Seq[Expression] =
    expressions(plan).flatMap(_.collect {
      case part if part.foldable && !part.isInstanceOf[Literal] => part
    })

  /** How many of `most` nodes are left if those of the tree are taken away. */
  private def left(most: Int, tree: Expression): Int =
    if (most == 0) 0
    else tree.children.foldLeft(most - 1)(left)

  /** How deeply calls of functions are nested. */
  private def calls(tree: Expression): Int =
    (0 +: tree.children.map(calls)).max + (if (tree.isInstanceOf[UnresolvedFunction]) 1 else 0)

  private def isForeign(part: Expression): Boolean = part match {
    case call: UnresolvedFunction =>
      call.nameParts.length > 1 || !Functions(call.nameParts.head.toLowerCase(Locale.ROOT))
    case _ => false
  }

  private def readsColumn(part: Expression): Boolean =
    part.exists(_.isInstanceOf[UnresolvedAttribute])

  /** Whether the analyzer replaces the part by something that the checks do not know. */
  private def isUnknown(part: Expression): Boolean = part match {
    case _: UnresolvedAttribute | _: UnresolvedFunction | _: UnresolvedExtractValue => false
    case _: LambdaFunction => true
    case other =>
      other.getClass.getName.startsWith(classOf[UnresolvedFunction].getPackage.getName + ".")
  }

  /**
   * Whether the part, if it does not depend on columns, is computed quickly and has a small value.
   */
  private def isCheap(part: Expression): Boolean = part match {
    case _: Cast | _: UnaryMinus | _: UnaryPositive | _: BinaryArithmetic => true
    case _: BinaryComparison | _: And | _: Or | _: Not | _: IsNull | _: IsNotNull => true
    case _: If | _: CaseWhen | _: Coalesce | _: Upper | _: Lower => true
    case other => other.children.isEmpty
  }

  /**
   * Whether a short expression may have a large value, or take very long for some rows, as regular
   * expressions that backtrack do.
   */
  private def isCostly(part: Expression): Boolean = part match {
    case StringReplace(_, Literal(search: UTF8String, _), Literal(replacement: UTF8String, _)) =>
      replacement.numBytes > search.numBytes
    case _: StringReplace => true
    case _: StringRegexExpression | _: MultiLikeBase | _: StringSplit => true
    case _: RegExpReplace | _: RegExpExtractBase | _: Levenshtein => true
    case _: StringRepeat | _: StringSpace | _: StringLPad | _: StringRPad => true
    case _: FormatNumber | _: FormatString => true
    case _: Sequence | _: ArrayRepeat | _: ArrayInsert => true
    case _ => false
  }

  /** Whether the part neither is a column, nor a constant, nor a function of other parts. */
  private def isOfQuery(part: Expression): Boolean = part match {
    case _: NamedExpression | _: Literal | _: LeafMathExpression => false
    case other => other.isInstanceOf[LeafExpression]
  }
}
