package io.pyzorder.layout.cells

import java.util.Arrays

/**
 * The rows of a sample, in an order in which the rows of a cell lie together. A cell is a range of
 * positions in this order, `from until to`.
 *
 * @param ids range ids, indexed first by column, then by sampled row
 */
private[cells] final class SampleRows(val ids: Array[Array[Int]]) {

  /** The number of rows. */
  val length: Int = ids.head.length

  private val rows = Array.range(0, length)
  private val scratch = new Array[Int](length)
  private val places = ids.map(SampleRows.placesOf)

  /**
   * Moves the rows left of the cut to the front and returns where the rows right of the cut begin.
   */
  def partition(from: Int, to: Int, byColumn: Int, at: Int): Int = {
    var low = from
    var high = to - 1
    while (low <= high) {
      if (ids(byColumn)(rows(low)) < at) low += 1
      else { val row = rows(low); rows(low) = rows(high); rows(high) = row; high -= 1 }
    }
    low
  }

  /** The distance between the positions of a cell's lowest and highest ids (see `placesOf`). */
  def spread(c: Int, from: Int, to: Int): Double = {
    var least = Int.MaxValue
    var greatest = -1
    var i = from
    while (i < to) {
      val id = ids(c)(rows(i))
      if (id < least) least = id
      if (id > greatest) greatest = id
      i += 1
    }
    if (greatest <= least) 0 else places(c)(greatest) - places(c)(least)
  }

  /** The columns that have more than one id in a cell. */
  def varying(from: Int, to: Int): Seq[Int] = ids.indices.filter(spread(_, from, to) > 0)

  /**
   * The ids of a column in a cell, in ascending order. The result is valid until the next call,
   * which reuses its memory.
   */
  def sortedIds(c: Int, from: Int, to: Int): SortedIds = {
    var least = Int.MaxValue
    var greatest = 0
    var i = from
    while (i < to) {
      val id = ids(c)(rows(i))
      if (id < least) least = id
      if (id > greatest) greatest = id
      scratch(i - from) = id
      i += 1
    }
    sort(to - from, least, greatest)
    new SortedIds(c, scratch, to - from)
  }

  /**
   * Sorts the first `count` ids in `scratch`. If they are close together, equal ids are counted.
   * This takes much less time than comparing them, and most of the time for a tree is needed here.
   */
  private def sort(count: Int, least: Int, greatest: Int): Unit =
    if (greatest - least > 4L * count) Arrays.sort(scratch, 0, count)
    else {
      val counts = new Array[Int](greatest - least + 1)
      var i = 0
      while (i < count) { counts(scratch(i) - least) += 1; i += 1 }
      var end = 0
      i = 0
      while (i < counts.length) {
        Arrays.fill(scratch, end, end + counts(i), least + i)
        end += counts(i)
        i += 1
      }
    }

  /**
   * Every `step`-th row of a cell in ascending order of a column: its id in the high half, then the
   * row.
   */
  def sorted(c: Int, from: Int, to: Int, step: Int): Array[Long] = {
    val found = Array.range(from, to, step).map(i => ids(c)(rows(i)).toLong << 32 | rows(i))
    Arrays.sort(found)
    found
  }
}

private[cells] object SampleRows {

  /**
   * The position of each id among all rows: the share of rows with a lower id, plus half the share
   * of rows with this id.
   */
  private def placesOf(column: Array[Int]): Array[Double] = {
    var greatest = 0
    column.foreach(id => if (id > greatest) greatest = id)
    val counts = new Array[Int](greatest + 1)
    column.foreach(id => counts(id) += 1)
    var below = 0L
    counts.map { count =>
      val place = (below + count / 2.0) / column.length
      below += count
      place
    }
  }
}

/**
 * The ids of a column in a cell, and the points at which they can be cut.
 *
 * @param ids their first `count` elements are the ids, in ascending order
 */
private[cells] final class SortedIds(column: Int, ids: Array[Int], count: Int) {

  /** Whether a cut before the first of these ids has rows on both sides. */
  def isCutBy(id: Int): Boolean = ids(0) < id && id <= ids(count - 1)

  /** Returns the cut before the first id that is at least `id`. */
  def cutBefore(id: Int, leaves: Int): Split = {
    var at = Arrays.binarySearch(ids, 0, count, id)
    if (at < 0) at = -at - 1 else while (at > 0 && ids(at - 1) == id) at -= 1
    cutAt(at, leaves, leftSlabs = 0)
  }

  /** Returns the possible cut that is nearest to `wanted` of `leaves` files. */
  def cutNearest(wanted: Int, leaves: Int, leftSlabs: Int): Split = {
    val aim = (count.toLong * wanted / leaves).toInt
    var before, after = aim
    while (before > 0 && ids(before - 1) == ids(aim)) before -= 1
    while (after < count && ids(after) == ids(aim)) after += 1
    val at = if (before == 0 || (after < count && after - aim < aim - before)) after else before
    cutAt(at, leaves, leftSlabs)
  }

  /** Returns the cut before a position in the sorted ids. */
  private def cutAt(at: Int, leaves: Int, leftSlabs: Int): Split = {
    val share = at.toDouble / count
    val leftLeaves = math.min(leaves - 1, math.max(1, math.round(share * leaves).toInt))
    val fullest = math.max(share / leftLeaves, (1 - share) / (leaves - leftLeaves)) * leaves
    Split(column, ids(at), leftSlabs, leftLeaves, fullest - 1)
  }
}

/**
 * A cut of a cell into two.
 *
 * @param cut        the first id of the right side
 * @param leftSlabs  number of the column's slabs on the left side
 * @param unevenness the fraction by which the files on the fuller side exceed an even share; 0 if
 *                   the cut is even
 */
private[cells] final case class Split(
    column: Int,
    cut: Int,
    leftSlabs: Int,
    leftLeaves: Int,
    unevenness: Double) {

  /** The number of slabs into which each column of the left side still has to be cut. */
  def left(slabs: Seq[Int]): Seq[Int] = taking(slabs, _ => leftSlabs)

  /** The number of slabs into which each column of the right side still has to be cut. */
  def right(slabs: Seq[Int]): Seq[Int] = taking(slabs, _ - leftSlabs)

  private def taking(slabs: Seq[Int], left: Int => Int): Seq[Int] =
    if (slabs.isEmpty || slabs(column) <= 1) slabs else slabs.updated(column, left(slabs(column)))
}
