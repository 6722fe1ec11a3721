package io.pyzorder.index.sketch

import java.util.Arrays

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters

/**
 * Collects the distinct hashes of a column's values, and the values themselves while they are few.
 * When the number of hashes reaches `limit`, gives up and frees its memory.
 *
 * The hashes are appended to an array. When the array is full, it is sorted and duplicates are
 * removed, and if most hashes remain, the array is enlarged. This takes much less time than a hash
 * table if most values are distinct.
 */
final class DistinctHashes(hash: ValueHash, limit: Int, bytes: Option[ValueBytes]) {

  private var hashes = new Array[Long](1 << 10)
  private var count = 0
  private var distinct = bytes.map(new DistinctValues(_)).orNull

  /** Adds a non-null value. */
  def add(row: SpecializedGetters, ordinal: Int): Unit = if (hashes != null) {
    val value = hash(row, ordinal)
    if (distinct != null) {
      if (!distinct.add(value, row, ordinal)) append(value)
      if (distinct.isFull) distinct = null
    } else if (count == 0 || hashes(count - 1) != value) {
      append(value) // if rows are sorted by the column, equal values are adjacent
    }
  }

  private def append(value: Long): Unit = {
    if (count == hashes.length) makeRoom()
    if (hashes != null) {
      hashes(count) = value
      count += 1
    }
  }

  private def makeRoom(): Unit = {
    removeDuplicates()
    if (hashes != null && 2L * count > hashes.length) {
      hashes = Arrays.copyOf(hashes, math.min(4L * hashes.length, 2L * limit).toInt)
    }
  }

  private def removeDuplicates(): Unit = {
    hashes = DistinctHashes.sorted(hashes, count)
    count = DistinctHashes.withoutRepetitions(hashes, count)
    if (count >= limit) hashes = null
  }

  /** The values themselves, or None if there are too many. */
  def values: Option[ValueList] =
    if (hashes == null) None else Option(distinct).map(_.result)

  /**
   * The distinct hashes, or None if there are too many. They are not sorted, but nearly so. In the
   * unlikely case that different hashes agree in their highest 33 bits, some may occur several
   * times.
   */
  def result: Option[Array[Long]] = {
    if (hashes != null) removeDuplicates()
    Option(hashes).map(Arrays.copyOf(_, count))
  }
}

private object DistinctHashes {

  /** The number of bits by which one pass of the radix sort orders the hashes. */
  private val Digit = 11

  /** The number of hashes up to which a comparison sort is faster than a radix sort. */
  private val Few = 512

  /**
   * Moves equal hashes among the first `count` next to each other. Returns an array of the same
   * length as `hashes`, which is overwritten.
   */
  private def sorted(hashes: Array[Long], count: Int): Array[Long] =
    if (count > Few) sortedByDigits(hashes, count)
    else {
      Arrays.sort(hashes, 0, count)
      hashes
    }

  /**
   * Sorts the hashes by their highest 33 bits, as unsigned numbers, with a radix sort that starts
   * with the lowest digit.
   */
  private def sortedByDigits(hashes: Array[Long], count: Int): Array[Long] = {
    var (from, to) = (hashes, new Array[Long](hashes.length))
    (64 - 3 * Digit until 64 by Digit).foreach { shift =>
      distribute(from, count, shift, to)
      val sorted = to
      to = from
      from = sorted
    }
    from
  }

  /** Copies the first `count` hashes, in the order of the digit whose lowest bit is at `shift`. */
  private def distribute(from: Array[Long], count: Int, shift: Int, to: Array[Long]): Unit = {
    val mask = (1 << Digit) - 1
    val next = new Array[Int](mask + 2)
    var i = 0
    while (i < count) {
      next(((from(i) >>> shift).toInt & mask) + 1) += 1
      i += 1
    }
    i = 0
    while (i < mask) {
      next(i + 1) += next(i)
      i += 1
    }
    i = 0
    while (i < count) {
      val digit = (from(i) >>> shift).toInt & mask
      to(next(digit)) = from(i)
      next(digit) += 1
      i += 1
    }
  }

  /** Moves hashes that differ from their predecessor to the front, and counts them. */
  private def withoutRepetitions(hashes: Array[Long], count: Int): Int = {
    var kept = 0
    var i = 0
    while (i < count) {
      if (kept == 0 || hashes(i) != hashes(kept - 1)) {
        hashes(kept) = hashes(i)
        kept += 1
      }
      i += 1
    }
    kept
  }
}
