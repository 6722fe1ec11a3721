package io.pyzorder.skipping.predicate

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{And, CaseWhen, Coalesce, Contains, EndsWith}
import org.apache.spark.sql.catalyst.expressions.{EqualNullSafe, EqualTo, Expression, GreaterThan}
import org.apache.spark.sql.catalyst.expressions.{GreaterThanOrEqual, If, In, InSet, IsNaN}
import org.apache.spark.sql.catalyst.expressions.{IsNotNull, IsNull, LessThan, LessThanOrEqual}
import org.apache.spark.sql.catalyst.expressions.{Like, Literal, Not, Or, RLike, StartsWith}
import org.apache.spark.sql.types.{BooleanType, DataType, DecimalType, StringType}
import org.apache.spark.unsafe.types.UTF8String

import io.pyzorder.skipping.predicate.ColumnFilters.{
  above, below, columnsEqual, eitherNull, notPrefix
}
import io.pyzorder.skipping.predicate.ColumnFilters.{oneOf, other, prefix}
import io.pyzorder.skipping.predicate.IndexFilter.{
  Always, ColumnBelow, HasNaN, HasNull, HasValue, Never
}
import io.pyzorder.skipping.predicate.Outcomes.{False, NotNull, NotTrue, Null, True}

/**
 * Derives the judgement of a predicate over a table's rows. This object has no side effects. It
 * alone decides which predicates may skip files. The rule for a kind of predicate defines the
 * filters for the predicate's three outcomes. The proofs of the filters are in IndexFilter, next to
 * each kind of filter, and the proofs of composition are in Judgement. The fixtures in sql/skipping
 * are examples, and docs/how-skipping-is-proved.md explains how to write a rule.
 */
object PredicateRules {

  /** The judgement of the predicates' conjunction, which is TRUE if there are no predicates. */
  def apply(predicates: Seq[Expression]): Judgement = {
    val whole = predicates.map(apply).reduceOption(_.and(_)).getOrElse(Judgement.constant(true))
    new Judgement(whole.isTotal,
      {
        case True => together(predicates, whole.may(True))
        case outcomes => whole.may(outcomes)
      })
  }

  /**
   * The filter for the predicates' conjunction, refined by the values of columns to which several
   * of the predicates apply: a file with the values 1 and 9 has no row with `c > 3 AND c < 6`,
   * though it has rows that satisfy one or the other.
   *
   * @param filter the conjunction of the predicates' own filters
   */
  def together(predicates: Seq[Expression], filter: IndexFilter): IndexFilter =
    predicates.flatMap(p => ListedValuesFilter.of(p).map(_.column -> p)).groupBy(_._1).values
      .filter(_.length > 1).flatMap(own => ListedValuesFilter.of(own.map(_._2).reduce(And(_, _))))
      .foldLeft(filter)(IndexFilter.and)

  /**
   * The judgement of a predicate. The largest parts that reference only one column are also
   * evaluated for the column's values, in files for which the index lists these. Smaller parts need
   * not be, because they would rule out no further files.
   */
  def apply(predicate: Expression): Judgement = Listing(predicate)

  private object Listing extends PredicateRules {
    override def apply(predicate: Expression): Judgement =
      if (ListedValuesFilter.of(predicate).isEmpty) rule(predicate)
      else {
        val ruled = Plain(predicate)
        new Judgement(ruled.isTotal,
          {
            case outcomes => ListedValuesFilter.of(Outcomes.test(predicate, outcomes))
                .foldLeft(ruled.may(outcomes))(IndexFilter.and)
          })
      }
  }

  private object Plain extends PredicateRules {
    override def apply(predicate: Expression): Judgement = rule(predicate)
  }
}

/** The rules for each kind of predicate. */
private sealed abstract class PredicateRules {

  /** The judgement of a predicate or of a part of it. */
  def apply(predicate: Expression): Judgement

  protected def rule(predicate: Expression): Judgement = predicate match {
    case And(l, r) => apply(l).and(apply(r))
    case Or(l, r) => apply(l).or(apply(r))
    case Not(child) => !apply(child)
    case Literal(value, BooleanType) => Judgement.constant(value)
    case constant if constant.foldable =>
      try Judgement.constant(constant.eval())
      catch { case NonFatal(_) => unruled(constant) }
    case IndexedValue(column, replaced) if column.dataType == BooleanType =>
      flag(predicate, FilterColumn(column.path, BooleanType)).agreeing(apply(replaced))
    case FilterColumn(c) if c.comparedType == BooleanType => flag(predicate, c)
    // If the predicate is TRUE for a row, one of the row's elements equals one of the values. The
    // column describes the elements of all rows, so no other kind of filter is valid for it.
    case IndexedElement(column, values, replaced) =>
      Judgement(isTotal = false)(
        oneOf(FilterColumn(column.path, column.dataType), values), Always, Always)
        .agreeing(apply(replaced))
    case If(condition, yes, no) => chosen(predicate, Seq(condition -> yes), Some(no))
    case CaseWhen(branches, otherwise) => chosen(predicate, branches, otherwise)
    case Coalesce(parts) => coalesced(predicate, parts)

    // IS NULL, IS TRUE and IS FALSE are never NULL themselves.
    case IsNull(value) => nullness(value).fold(unruled(predicate))(isNull =>
        ruled(predicate, isNull.isTotal)(isNull.may(True), isNull.may(False), Never))
    case IsNotNull(value) => nullness(value).fold(unruled(predicate))(isNull =>
        ruled(predicate, isNull.isTotal)(isNull.may(False), isNull.may(True), Never))
    case EqualNullSafe(value, Literal(null, _)) => apply(IsNull(value))
    case EqualNullSafe(Literal(null, _), value) => apply(IsNull(value))
    case EqualNullSafe(part, Literal(is: Boolean, _)) =>
      val same = if (is) apply(part) else !apply(part)
      ruled(predicate, same.isTotal)(same.may(True), same.may(NotTrue), Never)
    case EqualNullSafe(l, r) if l.dataType == BooleanType =>
      ifTotal(predicate, Seq(apply(l), apply(r)))(_.reduce(Judgement.equalNullSafe))
    case EqualTo(l, r) if l.dataType == BooleanType =>
      ifTotal(predicate, Seq(apply(l), apply(r)))(_.reduce(Judgement.equal))

    case Comparison(Coalesce(parts), against) => coalesced(predicate, parts.map(against))
    case LessThan(l, r) => ordered(predicate, l, r, orEqual = false)
    case LessThanOrEqual(l, r) => ordered(predicate, l, r, orEqual = true)
    case GreaterThan(l, r) => apply(LessThan(r, l))
    case GreaterThanOrEqual(l, r) => apply(LessThanOrEqual(r, l))
    case EqualTo(l, r) =>
      compared(predicate, l, r)(
        (c, v, _) => ruled(predicate)(oneOf(c, Seq(v)), other(c, Seq(v)), HasNull(c)),
        (a, b) => ruled(predicate)(columnsEqual(a, b), Always, eitherNull(a, b)))
    case EqualNullSafe(l, r) =>
      compared(predicate, l, r)(
        (c, v, _) =>
          ruled(predicate)(
            oneOf(c, Seq(v)), IndexFilter.or(HasNull(c), other(c, Seq(v))), Never),
        (a, b) =>
          ruled(predicate)(
            IndexFilter.or(IndexFilter.and(HasNull(a), HasNull(b)), columnsEqual(a, b)),
            Always,
            Never))
    case In(FilterColumn(c), list) if list.forall(isLiteral(c, _)) =>
      inList(predicate, c, list.map(_.eval()))
    case InSet(FilterColumn(c), set) => inList(predicate, c, set)

    // isnan(NULL) is FALSE.
    case IsNaN(FilterColumn(c)) => ruled(predicate)(HasNaN(c), Always, Never)
    case StartsWith(FilterColumn(c), Literal(p: UTF8String, StringType)) =>
      ruled(predicate)(prefix(c, p), notPrefix(c, p), HasNull(c))
    case like: Like => LikePattern.of(like).fold(unruled(like)) {
        case (c, LikePattern.Exactly(v)) =>
          ruled(like)(oneOf(c, Seq(v)), other(c, Seq(v)), HasNull(c))
        case (c, LikePattern.StartingWith(p, true)) =>
          ruled(like)(prefix(c, p), notPrefix(c, p), HasNull(c))
        case (c, LikePattern.StartingWith(p, false)) =>
          ruled(like)(
            IndexFilter.and(prefix(c, p), evaluated(like, True, Always)), Always, HasNull(c))
      }
    // Evaluation may fail, because Java's matcher can overflow the stack.
    case rlike: RLike => RegexPrefix.of(rlike).fold(unruled(rlike)) {
        case (c, RegexPrefix(p, anyRest)) =>
          ruled(rlike, isTotal = false)(
            prefix(c, p), if (anyRest) notPrefix(c, p) else Always, HasNull(c))
      }
    case _ => unruled(predicate)
  }

  /** The judgement of a Boolean column. */
  private def flag(predicate: Expression, c: FilterColumn): Judgement =
    ruled(predicate)(oneOf(c, Seq(true)), oneOf(c, Seq(false)), HasNull(c))

  /**
   * The judgement defined by three filters. A ConstantFileFilter replaces a filter that proves
   * nothing. An indexed expression may fail in files without statistics for it, so a predicate that
   * contains one is not total.
   */
  private def ruled(predicate: Expression, isTotal: Boolean = true)(
      whenTrue: => IndexFilter,
      whenFalse: => IndexFilter,
      whenNull: => IndexFilter): Judgement =
    Judgement(isTotal && !predicate.exists(_.isInstanceOf[IndexedValue]))(
      evaluated(predicate, True, whenTrue),
      evaluated(predicate, False, whenFalse),
      evaluated(predicate, Null, whenNull))

  private def evaluated(predicate: Expression, outcome: Int, filter: IndexFilter): IndexFilter =
    if (filter != Always) filter
    else ConstantFileFilter.of(Outcomes.test(predicate, outcome)).getOrElse(Always)

  /**
   * The judgement of a predicate without a rule. ConstantFileFilters evaluate the predicate, and
   * evaluation may fail. For EndsWith and Contains, and for predicates that may be NULL in any row,
   * `mayNotBeTrue` keeps every file whose values are not listed. Otherwise, metadata-only queries
   * would check in the store whether each file has changed, only to avoid reading the few files for
   * which a ConstantFileFilter can prove something. This would cost more than it saves.
   */
  private def unruled(predicate: Expression): Judgement = {
    lazy val whenNull = nullsOf(predicate)
    def open = whenNull == Always || predicate.isInstanceOf[EndsWith] ||
      predicate.isInstanceOf[Contains]
    new Judgement(isTotal = false,
      {
        case Null => evaluated(predicate, Null, whenNull)
        case outcome @ (True | False) => evaluated(predicate, outcome, Always)
        case _ if open => Always
      })
  }

  /**
   * The filter for rows in which the predicate may be NULL: no rows, rows in which an operand is
   * NULL, or any rows.
   */
  private def nullsOf(predicate: Expression): IndexFilter = predicate match {
    case IsNull(_) | IsNotNull(_) | IsNaN(_) | EqualNullSafe(_, _) => Never
    case InSet(_, set) if set.contains(null) => Always
    case EqualTo(_, _) | LessThan(_, _) | LessThanOrEqual(_, _) | In(_, _) | InSet(_, _) |
        StartsWith(_, _) | EndsWith(_, _) | Contains(_, _) | (_: Like) =>
      predicate.children.map(nullness(_).fold(Always: IndexFilter)(_.may(True)))
        .reduce(IndexFilter.or)
    case _ => Always
  }

  /**
   * Judges `value IS NULL`. None if there is no rule for it. Every expression that
   * FilterColumn matches is treated as a column.
   */
  private def nullness(value: Expression): Option[Judgement] = value match {
    case FilterColumn(c) => Some(Judgement(isTotal = true)(HasNull(c), HasValue(c), Never))
    case Literal(v, _) => Some(Judgement.constant(v == null))
    case predicate if predicate.dataType == BooleanType =>
      val part = apply(predicate)
      Some(Judgement(part.isTotal)(part.may(Null), part.may(NotNull), Never))
    case _ => None
  }

  /**
   * The judgements of the branches are combined only if evaluating the conditions cannot fail.
   * Otherwise, the query must read the rows and raise the error, even if every possible result is
   * known.
   */
  private def chosen(
      predicate: Expression,
      branches: Seq[(Expression, Expression)],
      otherwise: Option[Expression]): Judgement =
    ifTotal(predicate, branches.map(branch => apply(branch._1))) { conditions =>
      conditions.zip(branches.map(branch => apply(branch._2)))
        .foldRight(otherwise.fold(Judgement.constant(null))(apply)) {
          case ((condition, yes), no) => Judgement.choice(condition, yes, no)
        }
    }

  private def coalesced(predicate: Expression, parts: Seq[Expression]): Judgement =
    ifTotal(predicate, parts.init.map(apply))(first =>
      (first :+ apply(parts.last)).reduceRight(Judgement.coalesce))

  private def ifTotal(predicate: Expression, parts: Seq[Judgement])(
      compose: Seq[Judgement] => Judgement): Judgement =
    if (!parts.forall(_.isTotal)) unruled(predicate)
    else {
      val whole = compose(parts)
      new Judgement(whole.isTotal,
        {
          case outcome @ (True | False | Null) =>
            evaluated(predicate, outcome, notTooLarge(whole.may(outcome)))
          case outcomes => notTooLarge(whole.may(outcomes))
        })
    }

  /**
   * The filter, or Always if the filter is too large. Each nested comparison of two predicates
   * doubles the filter's size.
   */
  private def notTooLarge(filter: IndexFilter): IndexFilter =
    if (filter.size > MaxSize) Always else filter

  private val MaxSize = 2000

  /**
   * Matches a comparison with a literal, such as `v < 1`. Such a comparison is NULL where v is
   * null, so `coalesce(a, b) < 1` equals `coalesce(a < 1, b < 1)`.
   */
  private object Comparison {
    def unapply(predicate: Expression): Option[(Expression, Expression => Expression)] =
      predicate match {
        case EqualTo(_, _) | LessThan(_, _) | LessThanOrEqual(_, _) =>
          predicate.children.filterNot(_.isInstanceOf[Literal]) match {
            case Seq(value) => Some((value,
                  other =>
                    predicate.mapChildren(child =>
                      if (child eq value) other else child)))
            case _ => None
          }
        case _ => None
      }
  }

  /**
   * `<` or `<=`. Values are totally ordered, with NaN last, so "not below" means "above or equal".
   */
  private def ordered(
      predicate: Expression,
      left: Expression,
      right: Expression,
      orEqual: Boolean): Judgement =
    compared(predicate, left, right)(
      (c, v, isLeft) =>
        if (isLeft) ruled(predicate)(below(c, v, orEqual), above(c, v, !orEqual), HasNull(c))
        else ruled(predicate)(above(c, v, orEqual), below(c, v, !orEqual), HasNull(c)),
      (a, b) =>
        ruled(predicate)(
          ColumnBelow(a, b, orEqual), ColumnBelow(b, a, !orEqual), eitherNull(a, b)))

  /**
   * A comparison of a column with a literal of its type, or of two columns. A NULL literal makes
   * the comparison NULL for every row.
   *
   * @param value returns the judgement for the column, the literal, and a flag that is true if the
   *              column is on the left
   */
  private def compared(predicate: Expression, left: Expression, right: Expression)(
      value: (FilterColumn, Any, Boolean) => Judgement,
      columns: (FilterColumn, FilterColumn) => Judgement): Judgement = (left, right) match {
    case (FilterColumn(_), Literal(null, _)) | (Literal(null, _), FilterColumn(_)) =>
      Judgement.constant(null)
    case (FilterColumn(c), Literal(v, t)) if sameType(c, t) => value(c, v, true)
    case (Literal(v, t), FilterColumn(c)) if sameType(c, t) => value(c, v, false)
    case (FilterColumn(a), FilterColumn(b)) if sameType(a, b.comparedType) => columns(a, b)
    case _ => unruled(predicate)
  }

  private def isLiteral(column: FilterColumn, expression: Expression): Boolean = expression match {
    case Literal(value, dataType) => value == null || sameType(column, dataType)
    case _ => false
  }

  /** Decimals are compared by value, regardless of their scales. */
  private def sameType(column: FilterColumn, dataType: DataType): Boolean =
    (column.comparedType, dataType) match {
      case (_: DecimalType, _: DecimalType) => true
      case (a, b) => a == b
    }

  /**
   * IN with a list. If the list contains a null, IN is NULL rather than FALSE for a value that
   * equals none of the other elements. With an empty list, IN is FALSE even for a null, so FALSE is
   * possible in every file.
   */
  private def inList(predicate: Expression, c: FilterColumn, list: Iterable[Any]): Judgement = {
    lazy val none = other(c, list.filter(_ != null))
    lazy val hasNull = list.exists(_ == null)
    ruled(predicate)(
      oneOf(c, list),
      if (list.isEmpty) Always else if (hasNull) Never else none,
      if (hasNull) IndexFilter.or(HasNull(c), none) else HasNull(c))
  }
}
