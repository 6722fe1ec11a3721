package io.pyzorder.skipping

import io.pyzorder.skipping.IndexFilter._

import org.apache.spark.sql.catalyst.expressions.{And => AndPredicate, Or => OrPredicate}
import org.apache.spark.sql.catalyst.expressions.{Contains, EndsWith, EqualNullSafe, EqualTo}
import org.apache.spark.sql.catalyst.expressions.{Expression, GreaterThan, GreaterThanOrEqual, In}
import org.apache.spark.sql.catalyst.expressions.{InSet, IsNaN, IsNotNull, IsNull, LessThan}
import org.apache.spark.sql.catalyst.expressions.{LessThanOrEqual, Like, Literal, Not, StartsWith}

/**
 * Rewrites a predicate into a filter over the index that is true for every file with a row for
 * which the predicate is NULL: what PredicateToIndexFilter asks of IS NULL and IS NOT TRUE.
 *
 * The predicates named here are NULL only where an operand is NULL. AND, OR and IN may be FALSE or
 * TRUE there all the same, which only keeps more files. An operand is a literal, or what
 * FilterColumn takes, which is NULL only where the column is; a cast that may give NULL is neither.
 */
object PredicateToNullFilter {

  def apply(predicate: Expression): IndexFilter = predicate match {
    case Literal(value, _) => if (value == null) Always else Never
    case FilterColumn(c) => HasNull(c)
    case IsNull(_) | IsNotNull(_) | IsNaN(_) | EqualNullSafe(_, _) => Never
    case Not(child) => apply(child)
    case InSet(value, set) => if (set.contains(null)) Always else apply(value)
    case AndPredicate(_, _) | OrPredicate(_, _) | EqualTo(_, _) | LessThan(_, _) |
        LessThanOrEqual(_, _) | GreaterThan(_, _) | GreaterThanOrEqual(_, _) | In(_, _) |
        StartsWith(_, _) | EndsWith(_, _) | Contains(_, _) | (_: Like) =>
      predicate.children.map(apply).reduce(or)
    case _ => Always
  }
}
