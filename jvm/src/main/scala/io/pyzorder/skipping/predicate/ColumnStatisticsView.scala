package io.pyzorder.skipping.predicate

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.util.TypeUtils

/**
 * One column's statistics in all files of a snapshot, as the judge asks for them. Files are
 * numbered from 0. What is not known must be answered with the value that keeps the file.
 */
abstract class ColumnStatisticsView {

  /** Both bounds are known: they enclose every value that is neither null nor NaN. */
  def bounded(file: Int): Boolean

  /** Proved: nulls and NaN aside there is no value. */
  def empty(file: Int): Boolean

  /** A value is NaN, or may be. */
  def nanSeen(file: Int): Boolean

  /** May some row be null? */
  def mayBeNull(file: Int): Boolean

  /** May some row be something else than null? NaN counts. */
  def mayHaveValue(file: Int): Boolean

  /** Proved: every row has the same value, which `min` gives; no null, no NaN, neither zero. */
  def oneValue(file: Int): Boolean

  /** The lower bound, boxed; asked only where `bounded`. */
  def min(file: Int): Any

  /** The upper bound, boxed; asked only where `bounded`. */
  def max(file: Int): Any

  /** The values' order, which is Spark's. */
  def ordering: Ordering[Any]

  /** Both bounds against one value, which is neither null nor NaN. */
  def against(value: Any): BoundComparison = new BoundComparison {
    override def min(file: Int): Int = ordering.compare(ColumnStatisticsView.this.min(file), value)
    override def max(file: Int): Int = ordering.compare(ColumnStatisticsView.this.max(file), value)
  }

  /** Whether one of the values, which are sorted, lies between the bounds; where `bounded`. */
  def enclosesOneOf(sorted: Array[Any]): FileTest = new FileTest {
    override def mayMatch(file: Int): Boolean = {
      val least = ColumnStatisticsView.this.min(file)
      var low = 0
      var high = sorted.length
      while (low < high) {
        val middle = (low + high) >>> 1
        if (ordering.lt(sorted(middle), least)) low = middle + 1 else high = middle
      }
      low < sorted.length && ordering.lteq(sorted(low), ColumnStatisticsView.this.max(file))
    }
  }
}

/** Signs of `bound - value`. */
abstract class BoundComparison {
  def min(file: Int): Int
  def max(file: Int): Int
}

/** A question to one file: may some of its rows make the predicate TRUE? */
abstract class FileTest {

  def mayMatch(file: Int): Boolean

  /**
   * The same question to many files: one column after the other is a third of the time.
   *
   * @param files  the files' numbers
   * @param places which of `files` are asked, its first `count`; those of files that may match are
   *               moved to the front, in their order
   * @return how many those are
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
 * A column's facts seen through a function that keeps the order; bounds are unknown where it fails
 * or does not keep the order between them.
 */
final class FunctionStatisticsView(facts: ColumnStatisticsView, column: FilterColumn)
    extends ColumnStatisticsView {

  private val convert = column.convert

  override val ordering: Ordering[Any] = TypeUtils.getInterpretedOrdering(column.comparedType)

  override def bounded(file: Int): Boolean = facts.bounded(file) && {
    val (least, greatest) = (facts.min(file), facts.max(file))
    try column.keepsOrder(least, greatest) && convert(least) != null && convert(greatest) != null
    catch { case NonFatal(_) => false } // a day past the last timestamp
  }

  override def empty(file: Int): Boolean = facts.empty(file)
  override def nanSeen(file: Int): Boolean = facts.nanSeen(file)
  override def mayBeNull(file: Int): Boolean = facts.mayBeNull(file)
  override def mayHaveValue(file: Int): Boolean = facts.mayHaveValue(file)
  override def oneValue(file: Int): Boolean = facts.oneValue(file) && bounded(file)
  override def min(file: Int): Any = convert(facts.min(file))
  override def max(file: Int): Any = convert(facts.max(file))
}
