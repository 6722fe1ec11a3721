package io.pyzorder.skipping.predicate

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.util.TypeUtils

/**
 * One column's statistics for all files of a snapshot, in the form that the filters need. Files are
 * numbered from 0. If a result is unknown, the method must return the value that keeps the file.
 */
abstract class ColumnStatisticsView {

  /** Whether both bounds are known. They enclose every value that is neither null nor NaN. */
  def bounded(file: Int): Boolean

  /** Whether the column provably contains only nulls and NaN. */
  def empty(file: Int): Boolean

  /** Whether some value may be NaN. */
  def nanSeen(file: Int): Boolean

  /** Whether the value of some row may be null. */
  def mayBeNull(file: Int): Boolean

  /** Whether some row may have a non-null value. NaN counts as a value. */
  def mayHaveValue(file: Int): Boolean

  /**
   * Whether every row provably has the same value, which `min` returns. This value is not null, NaN
   * or a zero of either sign.
   */
  def oneValue(file: Int): Boolean

  /** The lower bound, boxed. Called only if `bounded` returns true. */
  def min(file: Int): Any

  /** The upper bound, boxed. Called only if `bounded` returns true. */
  def max(file: Int): Any

  /** Spark's order of the values. */
  def ordering: Ordering[Any]

  /** Compares both bounds with one value, which is neither null nor NaN. */
  def against(value: Any): BoundComparison = new BoundComparison {
    override def min(file: Int): Int = ordering.compare(ColumnStatisticsView.this.min(file), value)
    override def max(file: Int): Int = ordering.compare(ColumnStatisticsView.this.max(file), value)
  }

  /**
   * Whether one of the sorted values lies between the bounds. Called only if `bounded` returns
   * true.
   */
  def enclosesOneOf(sorted: Array[Any]): FileTest = new FileTest {
    override def mayMatch(file: Int): Boolean = {
      val next = firstNotBelow(sorted, ColumnStatisticsView.this.min(file))
      next < sorted.length && ordering.lteq(sorted(next), ColumnStatisticsView.this.max(file))
    }
  }

  /** The position of the first of the sorted values that is not below `value`. */
  private[predicate] final def firstNotBelow(sorted: Array[Any], value: Any): Int = {
    var low = 0
    var high = sorted.length
    while (low < high) {
      val middle = (low + high) >>> 1
      if (ordering.lt(sorted(middle), value)) low = middle + 1 else high = middle
    }
    low
  }

  /**
   * Tests whether some row may have one of the values, using information beyond the bounds, such as
   * sketches. The values are neither null nor NaN. Called only if `bounded` returns true.
   */
  def mayHold(values: Seq[Any]): FileTest = IndexFilter.Keep

  /**
   * Tests the values themselves, where the index lists all non-null values of a file. A file that
   * fails the test has no non-null value that passes it. None if no file can have a list.
   *
   * @param filter identifies the test
   * @param passes the test of a value, which is not null
   */
  def someValue(filter: ListedValuesFilter, passes: Any => Boolean): Option[FileTest] = None
}

/** Compares a file's bounds with one value. Each result has the sign of `bound - value`. */
abstract class BoundComparison {
  def min(file: Int): Int
  def max(file: Int): Int
}

/** Tests whether some row of a file may make the predicate TRUE. */
abstract class FileTest {

  def mayMatch(file: Int): Boolean

  /**
   * Tests many files at once. Testing all files by one column, and then all files by the next
   * column, takes a third as long as testing file by file.
   *
   * @param files  the files' numbers
   * @param places the positions in `files` to test, in the first `count` elements; the positions of
   *               files that may match are moved to the front, in their original order
   * @return the number of files that may match
   */
  def select(files: Array[Int], places: Array[Int], count: Int): Int = {
    var kept = 0
    var i = 0
    while (i < count) {
      val place = places(i)
      if (mayMatch(files(place))) {
        places(kept) = place
        kept += 1
      }
      i += 1
    }
    kept
  }
}

/**
 * The statistics of an order-preserving function of a column, derived from the column's statistics.
 * The bounds are unknown where the function fails, or where it does not preserve the order of the
 * values between the column's bounds.
 */
final class FunctionStatisticsView(facts: ColumnStatisticsView, column: FilterColumn)
    extends ColumnStatisticsView {

  private val convert = column.convert

  override val ordering: Ordering[Any] = TypeUtils.getInterpretedOrdering(column.comparedType)

  override def bounded(file: Int): Boolean = facts.bounded(file) && {
    val (least, greatest) = (facts.min(file), facts.max(file))
    try column.keepsOrder(least, greatest) && convert(least) != null && convert(greatest) != null
    catch { case NonFatal(_) => false } // for example, the day is too late for a timestamp
  }

  override def empty(file: Int): Boolean = facts.empty(file)
  override def nanSeen(file: Int): Boolean = facts.nanSeen(file)
  override def mayBeNull(file: Int): Boolean = facts.mayBeNull(file)
  override def mayHaveValue(file: Int): Boolean = facts.mayHaveValue(file)
  override def oneValue(file: Int): Boolean = facts.oneValue(file) && bounded(file)
  override def min(file: Int): Any = convert(facts.min(file))
  override def max(file: Int): Any = convert(facts.max(file))
}
