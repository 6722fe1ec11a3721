package io.pyzorder.skipping.predicate

import java.util.{Arrays, HashSet => JHashSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.DataType

/** The values of one join key, either as an exact set or as ranges. None of them is null. */
sealed trait KeyValues {

  /** The values as ranges in order, and whether NaN, which lies in no range, may be among them. */
  protected def asRanges(ordering: Ordering[Any]): (IndexedSeq[(Any, Any)], Boolean)

  /**
   * Returns a test of whether a value may equal one of these values. The tested value may be null.
   */
  def test(dataType: DataType): Any => Boolean = {
    val ordering = TypeUtils.getInterpretedOrdering(dataType)
    val (ranges, mayBeNaN) = asRanges(ordering)
    val lows = ranges.map(_._1.asInstanceOf[AnyRef]).toArray
    value =>
      if (value == null) false
      else if (ColumnFilters.isNaN(value)) mayBeNaN
      else {
        val found = Arrays.binarySearch(lows, value.asInstanceOf[AnyRef], ordering)
        found >= 0 || (found < -1 && ordering.lteq(value, ranges(-found - 2)._2))
      }
  }
}

object KeyValues {

  /** The exact set of values. */
  final case class Each(values: Set[Any]) extends KeyValues {
    override def toString: String = counted(values.size, "value")

    override protected def asRanges(ordering: Ordering[Any]): (IndexedSeq[(Any, Any)], Boolean) = {
      val (nans, others) = values.toIndexedSeq.partition(ColumnFilters.isNaN)
      (others.sorted(ordering).map(value => (value, value)), nans.nonEmpty)
    }
  }

  /**
   * Every value lies in one of the ranges, or is NaN. The ranges are in order and do not overlap.
   *
   * @param mayBeNaN whether some value may be NaN, which lies in no range
   */
  final case class Ranges(ranges: IndexedSeq[(Any, Any)], mayBeNaN: Boolean) extends KeyValues {
    override def toString: String = counted(ranges.length, "range")

    override protected def asRanges(ordering: Ordering[Any]): (IndexedSeq[(Any, Any)], Boolean) =
      (ranges, mayBeNaN)
  }

  private def counted(number: Int, what: String): String =
    if (number == 1) s"1 $what" else s"$number ${what}s"

  /**
   * Collects values. If there are more than `limit` distinct values, keeps at most `limit` ranges.
   */
  final class Builder(dataType: DataType, limit: Int) {
    private var each = new JHashSet[Any] // NaN equals itself here
    private val union = new RangeUnion(dataType, limit)
    private var hasNaN = false

    /** Adds a value. Nulls are ignored, because a null key equals nothing. */
    def add(value: Any): Unit = if (value != null) {
      if (each == null) include(value)
      else {
        each.add(value)
        if (each.size > limit) useRanges()
      }
    }

    /** Adds all of these values. */
    def addAll(values: KeyValues): Unit = values match {
      case Each(values) => values.foreach(add)
      case Ranges(ranges, mayBeNaN) =>
        useRanges()
        ranges.foreach { case (low, high) => union.add(low, high) }
        hasNaN ||= mayBeNaN
    }

    private def useRanges(): Unit = if (each != null) {
      each.forEach(include(_))
      each = null
    }

    private def include(value: Any): Unit =
      if (ColumnFilters.isNaN(value)) hasNaN = true else union.add(value, value)

    def result: KeyValues =
      if (each != null) Each(each.asScala.toSet) else Ranges(union.result, hasNaN)
  }
}
