package io.pyzorder.skipping

import io.pyzorder.skipping.AllRowsFilter._

import org.apache.spark.sql.catalyst.expressions.{And => AndPredicate, Or => OrPredicate}
import org.apache.spark.sql.catalyst.expressions.{EqualNullSafe, EqualTo, Expression, GreaterThan}
import org.apache.spark.sql.catalyst.expressions.{GreaterThanOrEqual, In, InSet, IsNaN, IsNotNull}
import org.apache.spark.sql.catalyst.expressions.{IsNull, LessThan, LessThanOrEqual, Like, Literal}
import org.apache.spark.sql.catalyst.expressions.{Not, StartsWith}
import org.apache.spark.sql.types.BooleanType

/**
 * Rewrites a predicate over a table's rows into the filter that proves it TRUE for all rows of a
 * file. The fixtures in sql/skipping/all_rows are its examples.
 *
 * NOT is pushed to the leaves (De Morgan holds in Kleene's logic); AND and OR compose as
 * AllRowsFilter says. What it must know of a leaf is when it is NULL, and that is the only thing
 * this page decides:
 *  - a comparison, IN, LIKE 'p%' and their negations are NULL where an operand is, and nowhere
 *    else: a literal that is NULL, and a list that holds one, make it NULL for rows without nulls
 *    (`5 IN (3, NULL)`), so that they prove nothing;
 *  - IS NULL, IS NOT NULL, <=> and isnan are never NULL;
 *  - of all else it is not known.
 * A function in front of a column (OrderKeeping) gives a value for every value, or fails; and where
 * the first judge evaluates `NOT p` on a file of one value (OneValue), NULL counts as not TRUE,
 * which for these leaves it never is on a file without nulls.
 */
object PredicateToAllRowsFilter {

  /** The filter of the conjunction of the predicates; Proved when there are none. */
  def apply(predicates: Seq[Expression]): AllRowsFilter =
    predicates.foldLeft(Proved: AllRowsFilter)((filter, p) => and(filter, apply(p)))

  /** The filter that is true only for files with nothing but rows that make the predicate TRUE. */
  def apply(predicate: Expression): AllRowsFilter = predicate match {
    case AndPredicate(l, r) => and(apply(l), apply(r))
    case OrPredicate(l, r) => or(apply(l), apply(r))
    case Not(AndPredicate(l, r)) => or(apply(Not(l)), apply(Not(r)))
    case Not(OrPredicate(l, r)) => and(apply(Not(l)), apply(Not(r)))
    case Not(Not(child)) => apply(child)
    case Not(leaf) => ofLeaf(leaf, predicate)
    case leaf => ofLeaf(leaf, predicate)
  }

  /** `predicate` is the leaf or its negation. */
  private def ofLeaf(leaf: Expression, predicate: Expression): AllRowsFilter =
    operands(leaf).map(columns => (columns, PredicateToIndexFilter(Not(predicate)))) match {
      case None | Some((_, IndexFilter.Always)) => Unproved
      case Some((Nil, IndexFilter.Never)) => Proved
      case Some((columns, negated)) => NeverFalse(columns, negated)
    }

  /** The columns of which one must be null for the leaf to be NULL; None: that is not known. */
  private def operands(leaf: Expression): Option[Seq[FilterColumn]] = leaf match {
    case Literal(value, BooleanType) if value != null => Some(Nil)
    case IsNull(FilterColumn(_)) | IsNotNull(FilterColumn(_)) | IsNaN(FilterColumn(_)) => Some(Nil)
    case EqualNullSafe(_, _) => Some(Nil)
    case FilterColumn(c) if c.comparedType == BooleanType => Some(Seq(c))
    case EqualTo(l, r) => all(l, r)
    case LessThan(l, r) => all(l, r)
    case LessThanOrEqual(l, r) => all(l, r)
    case GreaterThan(l, r) => all(l, r)
    case GreaterThanOrEqual(l, r) => all(l, r)
    case In(c, list) => all(c +: list: _*)
    case InSet(FilterColumn(c), set) if !set.contains(null) => Some(Seq(c))
    case StartsWith(l, r) => all(l, r)
    case Like(l, r, _) => all(l, r)
    case _ => None
  }

  /** The columns among expressions that are columns and literals with a value. */
  private def all(expressions: Expression*): Option[Seq[FilterColumn]] = {
    val sides = expressions.map {
      case Literal(value, _) if value != null => Some(Nil)
      case FilterColumn(c) => Some(Seq(c))
      case _ => None
    }
    if (sides.contains(None)) None else Some(sides.flatten.flatten.distinct)
  }
}
