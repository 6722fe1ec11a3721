package io.pyzorder.index.collect

import java.util.Locale

import scala.util.matching.Regex

import org.apache.spark.sql.catalyst.analysis.{FunctionRegistry, UnresolvedAttribute}
import org.apache.spark.sql.catalyst.analysis.{UnresolvedExtractValue, UnresolvedFunction}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Generate, LogicalPlan, Window}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.pyzorder.common.{HugeNumbers, ZOrderErrors}

/**
 * The checks that an indexed expression must pass before each step of its resolution. The
 * expression may come from a forged index, which anyone who can write to the table's folder can
 * create. Resolving it must therefore not take a long time, read files or run user code.
 *
 *   - Spark's parser is slow on nested parentheses and huge numbers, so the text must be short and
 *     contain only a few parentheses and no such number.
 *   - The analyzer looks up functions, reads the tables of subqueries and computes some constants.
 *     The parsed expression may therefore contain only columns of the table, literals, and calls of
 *     Spark's own functions on columns.
 *   - The optimizer evaluates the parts that are the same for every row. `optimized` accepts only
 *     parts that are certain to be cheap to evaluate.
 *
 * @param text the expression
 */
private[collect] final class ExpressionChecks(val text: String) {

  import ExpressionChecks._

  /** Throws if the text is too long, or would take the parser very long. */
  def checkText(): Unit = {
    def has(more: Int, parts: Regex): Boolean = parts.findAllIn(text).length > more
    if (text.length > LongestText) throw ZOrderErrors.tooLong(text.take(100) + "…")
    // Each word or punctuation character adds at most one level to the expression tree.
    if (has(MostWords, Word) || has(MostOpenings, Opening) || HugeNumbers.areIn(text))
      throw ZOrderErrors.tooLong(text)
  }

  /**
   * Throws if the analyzer might take a long time, read files or run user code.
   *
   * @param isSame whether the session considers two column names equal
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

  /**
   * Throws if the expression depends on anything other than the columns of one row, or if
   * evaluating it may be costly.
   */
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
    if (has(isOfQuery) || has(isCostly) || has(growth(_) > MostGrowth))
      throw ZOrderErrors.unknownParts(text)
  }

  /**
   * Optimizes an analyzed plan in several rounds. Each round evaluates the constants, which must be
   * cheap to evaluate, and then runs the optimizer without ConstantFolding. The optimizer may
   * produce new constants, which the next round evaluates.
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

  /**
   * The maximum number of opening brackets and CASE keywords. Those in string literals are counted
   * as well, so the parser never encounters more than this.
   */
  private val MostOpenings = 30
  private val Opening = raw"(?i)[(\[{]|\bcase\b".r

  /**
   * The maximum number of nodes in the expression tree. Even a short text can produce a large
   * tree, because Spark repeats the operand of CASE for every WHEN, and also repeats the arguments
   * of some functions.
   */
  private val MostNodes = 1000
  private val DeepestCalls = 8

  /**
   * The maximum length of a value, as a multiple of the length of the row's values. A row may
   * contain long strings, so nested functions must not multiply their length.
   */
  private val MostGrowth = 64

  /** The maximum number of rounds that `optimized` may take to evaluate all constants. */
  private val MostRounds = 5

  /** Spark's own functions, except those that read files or that load or run other code. */
  private val Functions: Set[String] = FunctionRegistry.functionSet.map(_.funcName) -- Seq(
    "java_method", "reflect", "try_reflect", "from_avro", "to_avro", "schema_of_avro",
    "from_protobuf", "to_protobuf")

  private def expressions(plan: LogicalPlan): Seq[Expression] =
    plan.collect { case node => node.expressions }.flatten

  private def constants(plan: LogicalPlan): Seq[Expression] =
    expressions(plan).flatMap(_.collect {
      case part if part.foldable && !part.isInstanceOf[Literal] => part
    })

  /** Returns `most` minus the number of nodes in the tree, but at least 0. */
  private def left(most: Int, tree: Expression): Int =
    if (most == 0) 0
    else tree.children.foldLeft(most - 1)(left)

  /** The maximum nesting depth of function calls. */
  private def calls(tree: Expression): Int =
    (0 +: tree.children.map(calls)).max + (if (tree.isInstanceOf[UnresolvedFunction]) 1 else 0)

  private def isForeign(part: Expression): Boolean = part match {
    case call: UnresolvedFunction =>
      call.nameParts.length > 1 || !Functions(call.nameParts.head.toLowerCase(Locale.ROOT))
    case _ => false
  }

  private def readsColumn(part: Expression): Boolean =
    part.exists(_.isInstanceOf[UnresolvedAttribute])

  /** Whether the analyzer would replace the part with something that has not been checked. */
  private def isUnknown(part: Expression): Boolean = part match {
    case _: UnresolvedAttribute | _: UnresolvedFunction | _: UnresolvedExtractValue => false
    case _: LambdaFunction => true
    case other =>
      other.getClass.getName.startsWith(classOf[UnresolvedFunction].getPackage.getName + ".")
  }

  /** Whether a part that does not depend on columns is quick to evaluate and has a small value. */
  private def isCheap(part: Expression): Boolean = part match {
    case _: Cast | _: UnaryMinus | _: UnaryPositive | _: BinaryArithmetic => true
    case _: BinaryComparison | _: And | _: Or | _: Not | _: IsNull | _: IsNotNull => true
    case _: If | _: CaseWhen | _: Coalesce | _: Upper | _: Lower => true
    case other => other.children.isEmpty
  }

  /**
   * Whether the part may produce a very large value, or take a very long time to evaluate for some
   * rows. For example, a regular expression may backtrack excessively.
   */
  private def isCostly(part: Expression): Boolean = part match {
    case StringReplace(_, Literal(search: UTF8String, _), Literal(replacement: UTF8String, _)) =>
      replacement.numBytes > search.numBytes
    case _: StringReplace => true
    case _: StringRegexExpression | _: MultiLikeBase | _: StringSplit => true
    case _: RegExpReplace | _: RegExpExtractBase | _: Levenshtein => true
    case _: RegExpCount | _: StringToMap => true
    // Java computes ten to the power of the scale.
    case _: RoundBase | _: RoundCeil | _: RoundFloor => !isSmall(part.children(1))
    case _: StringRepeat | _: StringSpace | _: StringLPad | _: StringRPad => true
    case _: FormatNumber | _: FormatString => true
    case _: Sequence | _: ArrayRepeat | _: ArrayInsert => true
    // These compare each element with all others if they cannot hash the elements.
    case _: ArraySetLike | _: ArraysOverlap | _: ArrayExcept => true
    case other => multiplied(other).exists(!_.foldable)
  }

  /**
   * The operands whose length multiplies the time to evaluate the part, or the length of its value.
   * They must be constants, which are short.
   */
  private def multiplied(part: Expression): Seq[Expression] = part match {
    case _: StringLocate | _: FindInSet => part.children.take(1)
    case _: StringInstr | _: Contains | _: SubstringIndex => part.children.slice(1, 2)
    case call: StaticInvoke if call.functionName == "contains" => call.arguments.drop(1)
    case _: String2TrimExpression => part.children.drop(1)
    case _: ConcatWs => part.children.take(1)
    case _: ArrayJoin => part.children.drop(1)
    case _ => Nil
  }

  /**
   * Estimates the length of the part's value, as a multiple of the total length of the row's
   * values. Numbers and dates do not count. A function is assumed to double the length of its
   * arguments, as hex does.
   */
  private def growth(part: Expression): Long = part match {
    case _: Literal => 0
    case _ if isShort(part.dataType) => 0
    case _: Concat | _: ConcatWs | _: CreateArray | _: If | _: CaseWhen | _: Coalesce | _: Cast |
        _: Alias =>
      part.children.map(growth).sum
    case other => if (other.children.isEmpty) 1 else 2 * other.children.map(growth).sum
  }

  private def isShort(dataType: DataType): Boolean = dataType match {
    case _: NumericType | BooleanType | DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }

  private def isSmall(scale: Expression): Boolean = scale match {
    case Literal(digits: Int, _) => math.abs(digits.toLong) <= DecimalType.MAX_SCALE
    case _ => false
  }

  /**
   * Whether the part has no operands but is neither a column nor a constant, as is the case for
   * `current_date()`.
   */
  private def isOfQuery(part: Expression): Boolean = part match {
    case _: NamedExpression | _: Literal | _: LeafMathExpression => false
    case other => other.isInstanceOf[LeafExpression]
  }
}
