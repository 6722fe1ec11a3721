package io.pyzorder.skipping

import io.pyzorder.skipping.IndexFilter._

import org.apache.spark.sql.catalyst.expressions.{And => AndPredicate, Or => OrPredicate}
import org.apache.spark.sql.catalyst.expressions.{EqualNullSafe, EqualTo, Expression, GreaterThan}
import org.apache.spark.sql.catalyst.expressions.{GreaterThanOrEqual, In, InSet, IsNaN, IsNotNull}
import org.apache.spark.sql.catalyst.expressions.{IsNull, LessThan, LessThanOrEqual, Like, Literal}
import org.apache.spark.sql.catalyst.expressions.{Not, StartsWith}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Rewrites a predicate over a table's rows into a filter over its index: pure, and the one place
 * that decides what is sound. The fixtures in sql/skipping are its examples.
 *
 * A rule here may only say for which rows the predicate is TRUE. FALSE and NULL are the same to
 * it: both leave the row out. That is why it goes through AND, OR and NOT alone (Kleene's logic
 * obeys De Morgan) and never below CASE, coalesce or `=` of two booleans, where a FALSE or NULL of
 * the part makes a TRUE of the whole. `(a > 5) IS NULL` is TRUE for the null that `a > 5` would
 * have dropped: of that PredicateToNullFilter tells.
 */
object PredicateToIndexFilter {

  /** The filter of the conjunction of the predicates; Always when there are none. */
  def apply(predicates: Seq[Expression]): IndexFilter =
    predicates.foldLeft(Always: IndexFilter)((filter, p) => and(filter, apply(p)))

  /** The filter that is true for every file with a row for which the predicate is TRUE. */
  def apply(predicate: Expression): IndexFilter = orEvaluated(predicate, byRule(predicate))

  /** A predicate that no rule can use may still be evaluated on files of one value. */
  private def orEvaluated(predicate: => Expression, filter: IndexFilter): IndexFilter =
    if (filter == Always) OneValue.of(predicate).getOrElse(Always) else filter

  private def byRule(predicate: Expression): IndexFilter = predicate match {
    case AndPredicate(l, r) => and(apply(l), apply(r))
    case OrPredicate(l, r) => or(apply(l), apply(r))
    case Not(child) => negated(child)
    case Literal(value, BooleanType) => if (value == true) Always else Never
    case FilterColumn(c) if c.comparedType == BooleanType => OneOf(c, Seq(true))
    case IsNull(child) => PredicateToNullFilter(child)
    case IsNotNull(FilterColumn(c)) => HasValue(c)
    case IsNotNull(part) if part.dataType == BooleanType => or(apply(part), negated(part))
    case IsNaN(FilterColumn(c)) => HasNaN(c)

    case EqualTo(l, r) => equated(l, r)(equalTo)(columnsEqual(_, _))
    case LessThan(l, r) =>
      compared(l, r)(below(_, _, orEqual = false), above(_, _, orEqual = false))(
        ColumnBelow(_, _, orEqual = false))
    case LessThanOrEqual(l, r) =>
      compared(l, r)(below(_, _, orEqual = true), above(_, _, orEqual = true))(
        ColumnBelow(_, _, orEqual = true))
    case GreaterThan(l, r) => apply(LessThan(r, l))
    case GreaterThanOrEqual(l, r) => apply(LessThanOrEqual(r, l))

    // IS TRUE, IS FALSE
    case EqualNullSafe(part, Literal(is: Boolean, _)) => if (is) apply(part) else negated(part)
    // TRUE for two nulls as well; for a value and a literal the same as `=`.
    case EqualNullSafe(FilterColumn(c), Literal(null, _)) => HasNull(c)
    case EqualNullSafe(Literal(null, _), FilterColumn(c)) => HasNull(c)
    case EqualNullSafe(l, r) =>
      equated(l, r)(equalTo)((a, b) => or(and(HasNull(a), HasNull(b)), columnsEqual(a, b)))

    // A NULL in the list makes no row TRUE.
    case In(FilterColumn(c), list) => literals(c, list).fold(Always: IndexFilter)(oneOf(c, _))
    case InSet(FilterColumn(c), set) => oneOf(c, set)

    case StartsWith(FilterColumn(c), Literal(p: UTF8String, StringType)) => prefix(c, p)
    case like: Like => LikePattern.of(like).fold(Always: IndexFilter) {
        case (c, LikePattern.Exactly(value)) => oneOf(c, Seq(value))
        case (c, LikePattern.StartingWith(p, _)) => prefix(c, p)
      }
    case _ => Always
  }

  /** The filter of NOT predicate: TRUE where the predicate is FALSE, not where it is NULL. */
  private def negated(predicate: Expression): IndexFilter =
    orEvaluated(Not(predicate), negatedByRule(predicate))

  private def negatedByRule(predicate: Expression): IndexFilter = predicate match {
    case AndPredicate(l, r) => or(negated(l), negated(r))
    case OrPredicate(l, r) => and(negated(l), negated(r))
    case Not(child) => apply(child)
    case Literal(value, BooleanType) => if (value == false) Always else Never
    case FilterColumn(c) if c.comparedType == BooleanType => OneOf(c, Seq(false))
    case IsNull(child) => apply(IsNotNull(child))
    case IsNotNull(child) => apply(IsNull(child))
    // isnan(NULL) is FALSE: its negation is TRUE for nulls too.
    case IsNaN(_) => Always

    // The values of a type are in one total order, NaN at its end: not below is above or equal.
    case LessThan(l, r) => apply(LessThanOrEqual(r, l))
    case LessThanOrEqual(l, r) => apply(LessThan(r, l))
    case GreaterThan(l, r) => apply(LessThanOrEqual(l, r))
    case GreaterThanOrEqual(l, r) => apply(LessThan(l, r))
    case EqualTo(l, r) => equated(l, r)((c, v) => other(c, Seq(v)))((_, _) => Always)

    // IS NOT TRUE, IS NOT FALSE
    case EqualNullSafe(part, Literal(is: Boolean, _)) =>
      or(PredicateToNullFilter(part), if (is) negated(part) else apply(part))
    // Never NULL: NOT (c <=> v) is TRUE for nulls.
    case EqualNullSafe(FilterColumn(c), Literal(null, _)) => HasValue(c)
    case EqualNullSafe(Literal(null, _), FilterColumn(c)) => HasValue(c)
    case EqualNullSafe(l, r) =>
      equated(l, r)((c, v) => or(HasNull(c), other(c, Seq(v))))((_, _) => Always)

    case In(FilterColumn(c), list) => literals(c, list).fold(Always: IndexFilter)(noneOf(c, _))
    case InSet(FilterColumn(c), set) => noneOf(c, set)

    case StartsWith(FilterColumn(c), Literal(p: UTF8String, StringType)) => notPrefix(c, p)
    case like: Like => LikePattern.of(like).fold(Always: IndexFilter) {
        case (c, LikePattern.Exactly(value)) => other(c, Seq(value))
        case (c, LikePattern.StartingWith(p, anyRest)) if anyRest => notPrefix(c, p)
        case _ => Always
      }
    case _ => Always
  }

  private type WithValue = (FilterColumn, Any) => IndexFilter
  private type WithColumn = (FilterColumn, FilterColumn) => IndexFilter

  /**
   * A comparison of a column with a literal of its type, or of two columns; a NULL literal makes it
   * NULL for every row. `literalRight` serves `c op v`, `literalLeft` serves `v op c`.
   */
  private def compared(left: Expression, right: Expression)(
      literalRight: WithValue,
      literalLeft: WithValue)(columns: WithColumn): IndexFilter =
    (left, right) match {
      case (FilterColumn(c), Literal(v, t)) if sameType(c, t) =>
        if (v == null) Never else literalRight(c, v)
      case (Literal(v, t), FilterColumn(c)) if sameType(c, t) =>
        if (v == null) Never else literalLeft(c, v)
      case (FilterColumn(a), FilterColumn(b)) if sameType(a, b.comparedType) => columns(a, b)
      case _ => Always
    }

  private def equated(
      left: Expression,
      right: Expression)(literal: WithValue)(columns: WithColumn): IndexFilter =
    compared(left, right)(literal, literal)(columns)

  /** Decimals compare by value whatever their scales. */
  private def sameType(column: FilterColumn, dataType: DataType): Boolean =
    (column.comparedType, dataType) match {
      case (_: DecimalType, _: DecimalType) => true
      case (a, b) => a == b
    }

  private def isNaN(value: Any): Boolean = value match {
    case d: Double => d.isNaN
    case f: Float => f.isNaN
    case _ => false
  }

  private def isZero(value: Any): Boolean = value match {
    case d: Double => d == 0.0
    case f: Float => f == 0.0f
    case _ => false
  }

  private val equalTo: WithValue = (c, v) => oneOf(c, Seq(v))

  /** `c < NaN` is TRUE for every number, `c <= NaN` for every value. */
  private def below(c: FilterColumn, v: Any, orEqual: Boolean): IndexFilter =
    if (isNaN(v)) HasValue(c) else Below(c, v, orEqual)

  /** Nothing is above NaN, and only NaN equals it. */
  private def above(c: FilterColumn, v: Any, orEqual: Boolean): IndexFilter =
    if (!isNaN(v)) Above(c, v, orEqual) else if (orEqual) HasNaN(c) else Never

  /** Two values are equal only if each is at most the other. */
  private def columnsEqual(a: FilterColumn, b: FilterColumn): IndexFilter =
    and(ColumnBelow(a, b, orEqual = true), ColumnBelow(b, a, orEqual = true))

  private def oneOf(c: FilterColumn, list: Iterable[Any]): IndexFilter = {
    val (nans, values) = list.filter(_ != null).partition(isNaN)
    val finite = if (values.isEmpty) Never else OneOf(c, sorted(c, values))
    if (nans.isEmpty) finite else or(HasNaN(c), finite)
  }

  /** A NULL in the list: NOT IN is FALSE or NULL for every row (unless there is no list). */
  private def noneOf(c: FilterColumn, list: Iterable[Any]): IndexFilter =
    if (list.isEmpty) Always else if (list.exists(_ == null)) Never else other(c, list)

  /**
   * Leaving a value out of the list only keeps more files: NaN, which the bounds don't tell, and
   * ±0.0, which are equal here but not to every hash set.
   */
  private def other(c: FilterColumn, list: Iterable[Any]): IndexFilter = {
    val values = list.filterNot(v => isNaN(v) || isZero(v))
    if (values.isEmpty) HasValue(c) else Other(c, sorted(c, values))
  }

  private def prefix(c: FilterColumn, p: UTF8String): IndexFilter =
    if (p.numBytes == 0) HasValue(c) else Prefix(c, p)

  private def notPrefix(c: FilterColumn, p: UTF8String): IndexFilter =
    if (p.numBytes == 0) Never else NotPrefix(c, p)

  private def literals(c: FilterColumn, list: Seq[Expression]): Option[Seq[Any]] = {
    val values = list.collect { case Literal(v, t) if v == null || sameType(c, t) => v }
    if (values.length == list.length) Some(values) else None
  }
}
