package io.pyzorder.advisor

import java.util.Locale

import scala.collection.mutable

import org.apache.spark.sql.catalyst.analysis.{UnresolvedAttribute, UnresolvedFunction}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.{HugeNumbers, ReadFailure}
import io.pyzorder.index.model.IndexedColumns
import io.pyzorder.workload.Shape

/**
 * Checks the conditions in a recorded workload. Anyone with write access to the table's folder can
 * forge them, so only comparisons of the table's columns with constants are used.
 *
 * @param columns the names of the table's columns
 */
private[advisor] final class RecordedConditions(session: shim.SparkSession, columns: Seq[String]) {

  /** Whether the text is a condition that may be used. */
  def isUsable(text: String): Boolean = parsed(text).exists(isCondition)

  /**
   * Whether the text is a condition that may be used, and that only rows with certain values in one
   * of the columns can meet. Almost all rows meet a condition such as `a IS NOT NULL` or `a != 5`.
   *
   * @param paths the paths of the columns
   */
  def restricts(text: String, paths: Seq[Seq[String]]): Boolean =
    parsed(text).exists(condition => isCondition(condition) && restricts(condition, paths))

  /** Whether the text is a condition that may be used and that reads only these columns. */
  def readsOnly(text: String, columns: Seq[String]): Boolean =
    parsed(text).exists(condition =>
      isCondition(condition) && condition.collect { case column: UnresolvedAttribute => column }
        .forall(column => columns.exists(_.equalsIgnoreCase(column.nameParts.head))))

  /**
   * Whether files may be cut at the condition: one group of files for the rows that meet it, and
   * another for the rows that do not. Cuts at the values of a column serve a comparison of this
   * column with a constant at least as well.
   */
  def isCut(text: String): Boolean = parsed(text).exists {
    case simple @ (_: BinaryComparison | _: IsNull | _: IsNotNull) =>
      isCondition(simple) && namesIn(simple).length > 1
    case condition => isCondition(condition)
  }

  private def namesIn(condition: Expression): Seq[String] =
    condition.collect { case column: UnresolvedAttribute =>
      column.name.toLowerCase(Locale.ROOT)
    }.distinct

  /** Whether the text names one of the columns with these paths. */
  def isOneOf(text: String, paths: Seq[Seq[String]]): Boolean =
    parsed(text).exists(isOneOf(_, paths))

  private val known = mutable.HashMap.empty[String, Option[Expression]]

  private def parsed(text: String): Option[Expression] = known.getOrElseUpdate(text, parse(text))

  private def parse(text: String): Option[Expression] =
    try
      if (text.length > Shape.MaxLength || HugeNumbers.areIn(text)) None
      else Some(session.sessionState.sqlParser.parseExpression(text))
    catch { case ReadFailure(_) => None } // not SQL, or nested too deeply

  private def restricts(condition: Expression, paths: Seq[Seq[String]]): Boolean =
    condition match {
      case and: And => and.children.exists(restricts(_, paths))
      case or: Or => or.children.forall(restricts(_, paths))
      case _: Not | _: IsNotNull => false
      case other => other.exists(isOneOf(_, paths))
    }

  private def isOneOf(operand: Expression, paths: Seq[Seq[String]]): Boolean = operand match {
    case UnresolvedAttribute(named) =>
      paths.exists(path =>
        path.length == named.length &&
          path.zip(named).forall { case (a, b) => a.equalsIgnoreCase(b) })
    case _ => false
  }

  private def isCondition(expression: Expression): Boolean = expression match {
    case _: And | _: Or | _: Not => expression.children.forall(isCondition)
    case _: BinaryComparison | _: In | _: IsNull | _: IsNotNull =>
      expression.children.forall(isOperand)
    case call: UnresolvedFunction =>
      call.nameParts.length == 1 && !call.isDistinct && call.filter.isEmpty &&
      RecordedConditions.Functions(call.nameParts.head.toLowerCase(Locale.ROOT)) &&
      call.arguments.forall(isOperand)
    case _ => false
  }

  private def isOperand(expression: Expression): Boolean = expression match {
    case _: Literal => true
    case UnresolvedAttribute(path) => columns.exists(_.equalsIgnoreCase(path.head))
    case cast: Cast => IndexedColumns.supports(cast.dataType) && isOperand(cast.child)
    case minus: UnaryMinus => isOperand(minus.child)
    case _ => false
  }
}

private object RecordedConditions {

  /**
   * The functions into which Spark's optimizer turns LIKE. Other patterns cannot skip files, and
   * matching a forged pattern could take very long.
   */
  private val Functions = Set("startswith", "endswith", "contains")
}
