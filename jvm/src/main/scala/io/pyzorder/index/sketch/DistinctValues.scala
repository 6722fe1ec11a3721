package io.pyzorder.index.sketch

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters

/** Collects the distinct values of a column until there are too many for a ValueList. */
private[sketch] final class DistinctValues(bytes: ValueBytes) {

  /** A hash table with open addressing, which is at most half full. */
  private val hashes = new Array[Long](2 * ValueList.MaxValues)
  private val values = new Array[Array[Byte]](hashes.length)
  private var count = 0
  private var size = 0L

  /**
   * Adds a non-null value.
   *
   * @param hash the value's hash
   * @return true if the value was already there
   */
  def add(hash: Long, row: SpecializedGetters, ordinal: Int): Boolean = {
    var slot = hash.toInt & (hashes.length - 1)
    while (values(slot) != null &&
      (hashes(slot) != hash || !bytes.matches(values(slot), row, ordinal))) {
      slot = (slot + 1) & (hashes.length - 1)
    }
    val isKnown = values(slot) != null
    if (!isKnown) {
      hashes(slot) = hash
      values(slot) = bytes.encode(row, ordinal)
      count += 1
      size += values(slot).length + 1
    }
    isKnown
  }

  /** Whether there are too many values. No more may be added. */
  def isFull: Boolean = count >= ValueList.MaxValues || size > ValueList.MaxBytes

  def result: ValueList = ValueList.of(values.iterator.filter(_ != null))
}
