package io.pyzorder.skipping.predicate

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.UTF8String

import io.pyzorder.skipping.predicate.IndexFilter._

/**
 * The range of one column's values in the rows that match a filter, from `least` to `greatest`.
 * None means that there is no limit. The range is used only for display, never to skip a file.
 */
final case class PredicateBox(least: Option[Any], greatest: Option[Any])

object PredicateBox {

  private val Everything = PredicateBox(None, None)

  /**
   * The range to which a filter restricts the column. Conditions on functions of the column, and
   * conditions that do not restrict its values to a range, set no limit.
   */
  def of(filter: IndexFilter, isColumn: FilterColumn => Boolean): PredicateBox = filter match {
    case And(left, right) =>
      typeOf(filter, isColumn).fold(Everything)(both(of(left, isColumn), of(right, isColumn), _))
    case Or(left, right) =>
      typeOf(filter, isColumn).fold(Everything)(either(of(left, isColumn), of(right, isColumn), _))
    case range: OfColumn if range.column.through.isEmpty && isColumn(range.column) => ofRange(range)
    case _ => Everything
  }

  private def ofRange(range: OfColumn): PredicateBox = range match {
    case Below(_, value, _) => PredicateBox(None, Some(value))
    case Above(_, value, _) => PredicateBox(Some(value), None)
    case OneOf(_, values) => PredicateBox(values.headOption, values.lastOption)
    case Within(_, ranges) => PredicateBox(Some(ranges.head._1), Some(ranges.last._2))
    case Prefix(_, prefix) => PredicateBox(Some(prefix), Some(UTF8String.concat(prefix, Last)))
    case _ => Everything
  }

  /**
   * The last Unicode character. Few strings that start with `p` sort above `p` followed by this
   * character.
   */
  private val Last = UTF8String.fromString(new String(Character.toChars(Character.MAX_CODE_POINT)))

  private def typeOf(filter: IndexFilter, isColumn: FilterColumn => Boolean): Option[DataType] =
    filter.columns.find(isColumn).map(_.dataType)

  private def both(a: PredicateBox, b: PredicateBox, dataType: DataType): PredicateBox = {
    val order = TypeUtils.getInterpretedOrdering(dataType)
    PredicateBox(
      (a.least ++ b.least).reduceOption(order.max(_, _)),
      (a.greatest ++ b.greatest).reduceOption(order.min(_, _)))
  }

  private def either(a: PredicateBox, b: PredicateBox, dataType: DataType): PredicateBox = {
    val order = TypeUtils.getInterpretedOrdering(dataType)
    PredicateBox(
      for (x <- a.least; y <- b.least) yield order.min(x, y),
      for (x <- a.greatest; y <- b.greatest) yield order.max(x, y))
  }
}
