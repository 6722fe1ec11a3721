package io.pyzorder.skipping.predicate

import org.apache.spark.sql.catalyst.expressions.{EqualTo, Expression, GreaterThan}
import org.apache.spark.sql.catalyst.expressions.{GreaterThanOrEqual, LeafExpression, LessThan}
import org.apache.spark.sql.catalyst.expressions.{LessThanOrEqual, Not, Unevaluable}
import org.apache.spark.sql.types.{DataType, StructType}

import io.pyzorder.index.model.{ExpressionColumn, ExpressionForm, IndexedColumn}

/**
 * A placeholder for an expression for which the index has statistics. The rules treat it as a
 * column.
 *
 * @param replaced the expression, which has the same value for every row
 */
private[pyzorder] final case class IndexedValue(column: IndexedColumn, replaced: Expression)
    extends LeafExpression with Unevaluable {
  override def dataType: DataType = column.dataType
  override def nullable: Boolean = true
  override def sql: String = column.label
  override def toString: String = column.label
}

/**
 * Replaces parts of a predicate with IndexedValues if an index has statistics for them.
 *
 * A part is replaced only if it has the same form as an expression in the index, and if the session
 * has the EvaluationSettings under which the index was computed. Spark would then compute, for
 * every row, the same value as it did for the index. The new predicate therefore has the same
 * outcome as the original predicate if each IndexedValue stands for that value.
 *
 * A comparison is also replaced if the index has statistics for its negation: `a >= b` becomes
 * `NOT value` if `a < b` is indexed. Spark's order of a type is total, with NaN as the greatest
 * value, so exactly one of the two is TRUE unless an operand is NULL, and then both are NULL.
 *
 * @param schema   the columns of the files, as the scan reads them
 * @param columns  the columns of the indexes
 * @param settings the session's EvaluationSettings
 * @param zone     the session's time zone
 */
final class IndexedExpressions(
    schema: StructType,
    columns: Seq[IndexedColumn],
    settings: String,
    zone: String) {

  private val all: Seq[(ExpressionColumn, IndexedColumn)] =
    columns.distinct.flatMap(column => ExpressionColumn.unapply(column).map(_ -> column))

  private val usable: Map[String, IndexedColumn] =
    all.collect {
      case (expression, column) if expression.settings == settings =>
        expression.form -> column
    }.toMap

  private val forms: Set[String] = all.map(_._1.form).toSet

  /** The predicate, with its indexed parts replaced by IndexedValues. */
  def in(predicate: Expression): Expression =
    if (all.isEmpty) predicate
    else predicate.transformDown {
      case part => valueOf(part).orElse(negated(part).flatMap(valueOf).map(Not(_))).getOrElse(part)
    }

  private def valueOf(part: Expression): Option[Expression] =
    if (!mayBeIndexed(part)) None
    else ExpressionForm.of(part, schema).flatMap(usable.get)
      .filter(_.dataType == part.dataType).map(IndexedValue(_, part))

  private def negated(part: Expression): Option[Expression] = part match {
    case LessThan(l, r) => Some(GreaterThanOrEqual(l, r))
    case LessThanOrEqual(l, r) => Some(GreaterThan(l, r))
    case GreaterThan(l, r) => Some(LessThanOrEqual(l, r))
    case GreaterThanOrEqual(l, r) => Some(LessThan(l, r))
    case _ => None
  }

  /**
   * Further predicates on indexed expressions. They are TRUE for every row for which all the given
   * predicates are TRUE, so adding them does not change which rows match.
   */
  def implied(predicates: Seq[Expression]): Seq[Expression] =
    if (all.isEmpty) Nil
    else DayRange.of(predicates, zone).map { case (date, day) =>
      EqualTo(in(date), day)
    }.filter(_.left.isInstanceOf[IndexedValue])

  /** The parts of the predicate whose statistics were computed under other settings. */
  def unusable(predicate: Expression): Seq[String] =
    if (all.isEmpty) Nil
    else predicate.collect {
      case part
          if mayBeIndexed(part) && ExpressionForm.of(part, schema).exists(form =>
            forms(form) && !usable.contains(form)) => part.sql
    }

  /** A cheap test that avoids converting every part of a large predicate to its form. */
  private def mayBeIndexed(part: Expression): Boolean =
    part.children.nonEmpty && {
      val beginning = ExpressionForm.beginning(part)
      lazy val inputs = part.references.map(_.name).toSet
      all.exists { case (expression, _) =>
        expression.form.startsWith(beginning) && expression.inputs.toSet == inputs
      }
    }
}
