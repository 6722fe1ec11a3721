package io.pyzorder.skipping.predicate

import org.apache.spark.sql.catalyst.expressions.{Expression, InSet}

/**
 * A filter over the index, derived from the keys on the broadcast side of a join. It keeps every
 * file that may contain a row with one of these keys. Two join key filters are equal if their index
 * filters are equal, because they then keep the same files, no matter which joins they are derived
 * from.
 *
 * @param column a column of the files, or an order-preserving function of it, which must equal one
 *               of the keys
 * @param keys   the keys
 * @param filter the filter, on this column
 * @param text   a description of the keys, used only for display
 */
final class JoinKeyFilter private (
    val column: Expression,
    val keys: KeyValues,
    val filter: IndexFilter,
    val text: String) {

  override def equals(other: Any): Boolean = other match {
    case that: JoinKeyFilter => (that eq this) || that.hashCode == hashCode && that.filter == filter
    case _ => false
  }

  /** The hash code is computed only once, because there may be thousands of values. */
  override lazy val hashCode: Int = filter.hashCode

  override def toString: String = text
}

object JoinKeyFilter {

  /**
   * The filter for rows in which `column` equals one of the keys, or None if it can prove nothing.
   *
   * @param column a column of the files, or an order-preserving function of such a column
   * @param text   a description of the keys
   */
  def of(column: Expression, keys: KeyValues, text: String): Option[JoinKeyFilter] =
    filter(column, keys).map(new JoinKeyFilter(column, keys, _, text))

  private def filter(column: Expression, keys: KeyValues): Option[IndexFilter] = keys match {
    case KeyValues.Each(values) if values.isEmpty => Some(IndexFilter.Never)
    case KeyValues.Each(values) => filter(InSet(column, values))
    case KeyValues.Ranges(ranges, mayBeNaN) =>
      FilterColumn.unapply(column).map(ColumnFilters.within(_, ranges, mayBeNaN))
  }

  private def filter(predicate: Expression): Option[IndexFilter] =
    Some(PredicateRules(predicate).mayBeTrue).filter(_ != IndexFilter.Always)
}
