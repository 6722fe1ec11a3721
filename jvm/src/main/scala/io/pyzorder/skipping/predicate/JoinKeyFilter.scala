package io.pyzorder.skipping.predicate

import org.apache.spark.sql.catalyst.expressions.{And, Expression, GreaterThanOrEqual, InSet}
import org.apache.spark.sql.catalyst.expressions.{LessThanOrEqual, Literal}

/**
 * A filter over the index that the keys on a join's other side give: every row that the join can
 * use is in a file for which it is true. Two are equal if their filters are: Spark then reads the
 * same files, whichever join they come from.
 *
 * @param filter asks for one column
 * @param origin where the keys were found
 * @param text   how many keys, for showing
 */
final class JoinKeyFilter private (
    val filter: IndexFilter,
    val origin: JoinKeyFilter.Origin,
    val text: String) {

  override def equals(other: Any): Boolean = other match {
    case that: JoinKeyFilter => (that eq this) || that.hashCode == hashCode && that.filter == filter
    case _ => false
  }

  /** Once: there may be thousands of values. */
  override lazy val hashCode: Int = filter.hashCode

  override def toString: String = text
}

object JoinKeyFilter {

  /**
   * Which key of which broadcast asks for which column: what was done before need not be done again
   * when Spark optimizes the rest of a plan anew.
   */
  final class Origin(
      private val exchange: AnyRef,
      private val ordinal: Int,
      private val column: Expression) {

    override def equals(other: Any): Boolean = other match {
      case that: Origin =>
        (that.exchange eq exchange) && that.ordinal == ordinal && that.column == column
      case _ => false
    }

    override def hashCode: Int = 31 * System.identityHashCode(exchange) + ordinal
  }

  /**
   * The filter of `column = one of the keys`; None: nothing can be proved by it.
   *
   * @param column a column of the files, or a widening cast of one
   */
  def of(column: Expression, keys: KeyValues, origin: Origin): Option[JoinKeyFilter] =
    PredicateRules(predicate(column, keys)).mayBeTrue match {
      case IndexFilter.Always => None
      case filter => Some(new JoinKeyFilter(filter, origin, keys.toString))
    }

  private def predicate(column: Expression, keys: KeyValues): Expression =
    keys match {
      case KeyValues.Each(values) if values.isEmpty => Literal.FalseLiteral
      case KeyValues.Each(values) => InSet(column, values)
      case KeyValues.Range(min, max) =>
        And(
          GreaterThanOrEqual(column, Literal(min, column.dataType)),
          LessThanOrEqual(column, Literal(max, column.dataType)))
    }
}
