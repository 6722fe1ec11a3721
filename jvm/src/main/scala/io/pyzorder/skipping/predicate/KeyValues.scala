package io.pyzorder.skipping.predicate

import java.util.{HashSet => JHashSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.DataType

/** The values of one join key: an exact set, one range or several ranges. No value is null. */
sealed trait KeyValues

object KeyValues {

  /** The exact set of values. */
  final case class Each(values: Set[Any]) extends KeyValues {
    override def toString: String = if (values.size == 1) "1 value" else s"${values.size} values"
  }

  /** All values lie between `min` and `max` in Spark's order, in which NaN comes last. */
  final case class Range(min: Any, max: Any) extends KeyValues {
    override def toString: String = "a range of values"
  }

  /**
   * Every value lies in one of the ranges, or is NaN. The ranges are in order and do not overlap.
   *
   * @param mayBeNaN whether some value may be NaN, which lies in no range
   */
  final case class Ranges(ranges: IndexedSeq[(Any, Any)], mayBeNaN: Boolean) extends KeyValues

  /**
   * Collects values. If there are more than `limit` distinct values, keeps only the least and the
   * greatest.
   */
  final class Builder(dataType: DataType, limit: Int) {
    private val ordering = TypeUtils.getInterpretedOrdering(dataType)
    private var each = new JHashSet[Any] // NaN equals itself here
    private var min, max: Any = null

    /** Adds a value. Nulls are ignored, because a null key equals nothing. */
    def add(value: Any): Unit = if (value != null) {
      if (min == null || ordering.lt(value, min)) min = value
      if (max == null || ordering.gt(value, max)) max = value
      if (each != null) {
        each.add(value)
        if (each.size > limit) each = null
      }
    }

    def result: KeyValues = if (each != null) Each(each.asScala.toSet) else Range(min, max)
  }
}
