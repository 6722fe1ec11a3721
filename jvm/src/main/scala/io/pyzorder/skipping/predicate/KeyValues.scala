package io.pyzorder.skipping.predicate

import java.util.{HashSet => JHashSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.DataType

/** What is known of the values of one join key; none of them is null. */
sealed trait KeyValues

object KeyValues {

  /** These values and no other. */
  final case class Each(values: Set[Any]) extends KeyValues {
    override def toString: String = if (values.size == 1) "1 value" else s"${values.size} values"
  }

  /** No value is below `min` or above `max`, in Spark's order, which ends with NaN. */
  final case class Range(min: Any, max: Any) extends KeyValues {
    override def toString: String = "a range of values"
  }

  /** Takes values one by one, and forgets all but the least and the greatest above `limit`. */
  final class Builder(dataType: DataType, limit: Int) {
    private val ordering = TypeUtils.getInterpretedOrdering(dataType)
    private var each = new JHashSet[Any] // here NaN equals itself
    private var min, max: Any = null

    /** A null key equals nothing. */
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
