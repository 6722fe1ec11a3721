package io.pyzorder.skipping.predicate

import org.apache.spark.sql.catalyst.expressions.{ArrayContains, ArraysOverlap, EqualTo, Explode}
import org.apache.spark.sql.catalyst.expressions.{Expression, GreaterThan, GreaterThanOrEqual}
import org.apache.spark.sql.catalyst.expressions.{LeafExpression, LessThan, LessThanOrEqual}
import org.apache.spark.sql.catalyst.expressions.{Literal, Not, Predicate, Unevaluable}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.{ArrayType, DataType, StructType}

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
 * A placeholder for a predicate that is TRUE only for rows in which one of the values is an element
 * of an array. The index has statistics of the elements.
 *
 * @param values   the values, which are not null
 * @param replaced the predicate
 */
private[pyzorder] final case class IndexedElement(
    column: IndexedColumn,
    values: Seq[Any],
    replaced: Expression)
    extends LeafExpression with Unevaluable with Predicate {
  override def nullable: Boolean = true
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
 * If the index has statistics of an array's elements, `array_contains(array, value)` and
 * `arrays_overlap(array, values)` are replaced with an IndexedElement. If it is TRUE, one of the
 * values is an element of the array. If it is FALSE or NULL, nothing follows.
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
      case part =>
        valueOf(part).orElse(negated(part).flatMap(valueOf).map(Not(_))).orElse(elementOf(part))
          .getOrElse(part)
    }

  private def valueOf(part: Expression): Option[Expression] =
    columnOf(part).filter(_.dataType == part.dataType).map(IndexedValue(_, part))

  private def columnOf(part: Expression): Option[IndexedColumn] =
    formOf(part).flatMap(usable.get)

  private def formOf(part: Expression): Option[String] =
    if (mayBeIndexed(part)) ExpressionForm.of(part, schema) else None

  private def elementOf(part: Expression): Option[Expression] =
    searched(part).flatMap { case (elements, dataType, values) =>
      columnOf(elements).filter(_.dataType == dataType)
        .map(IndexedElement(_, values.filter(_ != null), part))
    }

  /**
   * The elements of which at least one equals one of the values if the predicate is TRUE, and their
   * type. A null equals nothing.
   */
  private def searched(part: Expression): Option[(Explode, DataType, Seq[Any])] = {
    def in(array: Expression, dataType: DataType, values: Seq[Any]) = array.dataType match {
      case ArrayType(`dataType`, _) => Some((Explode(array), dataType, values))
      case _ => None
    }
    part match {
      case ArrayContains(array, Literal(value, dataType)) => in(array, dataType, Seq(value))
      case ArraysOverlap(array, Literal(values: ArrayData, ArrayType(dataType, _))) =>
        in(array, dataType, values.toSeq[Any](dataType))
      case ArraysOverlap(Literal(values: ArrayData, ArrayType(dataType, _)), array) =>
        in(array, dataType, values.toSeq[Any](dataType))
      case _ => None
    }
  }

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
      case part if isUnusable(part) || searched(part).exists(found => isUnusable(found._1)) =>
        part.sql
    }

  private def isUnusable(part: Expression): Boolean =
    formOf(part).exists(form => forms(form) && !usable.contains(form))

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
