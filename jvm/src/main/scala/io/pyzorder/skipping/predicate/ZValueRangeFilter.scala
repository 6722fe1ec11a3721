package io.pyzorder.skipping.predicate

import scala.util.control.NonFatal

import org.apache.spark.unsafe.types.UTF8String

import io.pyzorder.expressions.{CurveBox, OrderedBytes}
import io.pyzorder.index.model.{IndexedColumn, ZValueColumn}

/**
 * A filter for tables that are clustered by the direct method. It represents another filter's
 * conditions on the clustering columns as a box in the space of the columns' ordered bits. A row
 * that makes the other filter TRUE lies in the box, and its z-value lies between the file's least
 * and greatest z-values. If no point in the box has a z-value between these two, the file has no
 * such row. This filter skips files that minima and maxima alone cannot skip, because a file that
 * begins and ends at arbitrary points of the curve fills only part of the box spanned by its
 * bounds.
 *
 * @param curve the z-value column of the index
 * @param low   for each clustering column, the lower bound of the ordered bits in the box,
 *              inclusive; the bits are compared as unsigned numbers
 * @param high  for each clustering column, the upper bound, inclusive
 */
final case class ZValueRangeFilter(curve: FilterColumn, low: Seq[Long], high: Seq[Long])
    extends IndexFilter {

  override def columns: Seq[FilterColumn] = Seq(curve)

  override private[skipping] def bound(facts: FilterColumn => Option[ColumnStatisticsView]) =
    facts(curve).map { known =>
      val box = new CurveBox(low.toArray, high.toArray)
      new FileTest {
        override def mayMatch(file: Int): Boolean = !known.bounded(file) ||
          box.meets(
            known.min(file).asInstanceOf[Array[Byte]], known.max(file).asInstanceOf[Array[Byte]])
      }
    }

  override def toString: String = s"${curve.sql("")} overlaps the box"
}

object ZValueRangeFilter {

  /** Adds to the filter the ranges that it implies for the z-value columns of an index. */
  def added(filter: IndexFilter, columns: Seq[IndexedColumn]): IndexFilter =
    columns.foldLeft(filter) {
      case (all, curve @ ZValueColumn(paths)) =>
        val clusteredBy = paths.flatMap(path => columns.find(_.path == path))
        if (clusteredBy.length < paths.length) all
        else of(filter, curve, clusteredBy).fold(all)(IndexFilter.and(all, _))
      case (all, _) => all
    }

  private def of(
      filter: IndexFilter,
      curve: IndexedColumn,
      clusteredBy: Seq[IndexedColumn]): Option[ZValueRangeFilter] = {
    val ranges = clusteredBy.map(Bits.of(filter, _))
    if (ranges.forall(_ == Bits.All)) None
    else Some(ZValueRangeFilter(
        FilterColumn(curve.path, curve.dataType), ranges.map(_.low), ranges.map(_.high)))
  }

  private val Unsigned: Ordering[Long] = java.lang.Long.compareUnsigned(_, _)

  /**
   * A range of unsigned numbers that contains the ordered bits of a column in all rows for which a
   * filter may be TRUE.
   */
  private final case class Bits(low: Long, high: Long) {

    def and(other: Bits): Bits = Bits(Unsigned.max(low, other.low), Unsigned.min(high, other.high))

    def or(other: Bits): Bits = Bits(Unsigned.min(low, other.low), Unsigned.max(high, other.high))
  }

  private object Bits {
    private val Greatest = -1L

    /** The ordered bits of a non-null value are at least this number. The bits of null are 0. */
    private val Least = 1L

    val All: Bits = Bits(0L, Greatest)

    /**
     * As unsigned numbers, the bits of a value are never less than those of a smaller value, and
     * the bits of NaN are greater than those of any number. The bits of -0.0 and 0.0 are the same.
     * A predicate that is never TRUE for a null is TRUE only for values whose bits are at least 1.
     */
    def of(filter: IndexFilter, column: IndexedColumn): Bits = filter match {
      case IndexFilter.And(left, right) => of(left, column).and(of(right, column))
      case IndexFilter.Or(left, right) => of(left, column).or(of(right, column))
      case leaf =>
        // A decimal with more digits than the column's type allows has no bits in that type.
        try ofLeaf(leaf, FilterColumn(column.path, column.dataType))
        catch { case NonFatal(_) => All }
    }

    private def ofLeaf(filter: IndexFilter, column: FilterColumn): Bits = {
      def bits(value: Any): Long = OrderedBytes.of(value, column.dataType)
      filter match {
        case IndexFilter.Below(`column`, value, _) => Bits(Least, bits(value))
        case IndexFilter.Above(`column`, value, _) => Bits(bits(value), Greatest)
        case IndexFilter.OneOf(`column`, values) => Bits(bits(values.head), bits(values.last))
        case IndexFilter.Within(`column`, ranges) =>
          Bits(bits(ranges.head._1), bits(ranges.last._2))
        case IndexFilter.Prefix(`column`, prefix) => Bits(bits(prefix), lastWith(prefix))
        case IndexFilter.HasNull(`column`) => Bits(0L, 0L)
        case IndexFilter.HasValue(`column`) => Bits(Least, Greatest)
        case _ => All
      }
    }

    /**
     * The upper bound of the ordered bits of strings with this prefix. A string's bits are its
     * first 8 bytes.
     */
    private def lastWith(prefix: UTF8String): Long = {
      val bits = OrderedBytes.ofUtf8(prefix)
      if (prefix.numBytes >= 8) bits else bits | (Greatest >>> (8 * prefix.numBytes))
    }
  }
}
