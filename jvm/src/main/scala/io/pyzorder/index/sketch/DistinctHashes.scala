package io.pyzorder.index.sketch

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters

/**
 * Collects the distinct hashes of a column's values. When their number reaches `limit`, gives up
 * and frees its memory.
 */
final class DistinctHashes(hash: ValueHash, limit: Int) {

  /**
   * A hash table in which 0 marks an empty slot. The hash 0 is recorded in `hasZero` instead. At
   * most half of the slots are used.
   */
  private var slots = new Array[Long](1 << 10)
  private var used = 0
  private var hasZero = false
  private var last = 0L

  /** Adds a non-null value. */
  def add(row: SpecializedGetters, ordinal: Int): Unit = if (slots != null) {
    val value = hash(row, ordinal)
    if (value == 0) hasZero = true
    else if (value != last) { // if rows are sorted by the column, equal values are adjacent
      last = value
      insert(value)
    }
  }

  private def insert(value: Long): Unit = {
    val at = DistinctHashes.slotOf(slots, value)
    if (slots(at) == 0) {
      slots(at) = value
      used += 1
      if (used >= limit) slots = null
      else if (2 * used > slots.length) grow()
    }
  }

  private def grow(): Unit = {
    val larger = new Array[Long](2 * slots.length)
    slots.foreach(value =>
      if (value != 0) larger(DistinctHashes.slotOf(larger, value)) = value)
    slots = larger
  }

  /** The distinct hashes, in no particular order, or None if there are too many. */
  def result: Option[Array[Long]] = Option(slots).map { slots =>
    val values = slots.filter(_ != 0)
    if (hasZero) values :+ 0L else values
  }
}

private object DistinctHashes {

  /** The slot that contains the value, or the empty slot where it belongs. */
  private def slotOf(slots: Array[Long], value: Long): Int = {
    val mask = slots.length - 1
    var at = value.toInt & mask
    while (slots(at) != 0 && slots(at) != value) at = (at + 1) & mask
    at
  }
}
