package io.pyzorder.skipping.predicate

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.unsafe.types.UTF8String

/**
 * A filter over the index table. For each file, it says whether some row may make a predicate TRUE
 * (or FALSE, or NULL). The answer "no" is always proved. Where nothing can be proved, the answer is
 * "yes".
 *
 * Each kind of filter states which rows match it and why a file that it skips contains no such row.
 * Filters are combined only with AND and OR. There is no negation. Negating "some row may match"
 * gives "no row matches", but NOT needs "some row may fail to match".
 */
trait IndexFilter {

  /**
   * Binds the filter to a snapshot's columns. A filter on a column for which `facts` returns None
   * keeps every file.
   *
   * @param facts returns the statistics of the column with exactly this path and type, ignoring any
   *              function applied to it
   */
  final def bind(facts: FilterColumn => Option[ColumnStatisticsView]): FileTest =
    bound(facts).getOrElse(IndexFilter.Keep)

  /** Binds the filter, or returns None if it keeps every file. */
  private[skipping] def bound(facts: FilterColumn => Option[ColumnStatisticsView]): Option[FileTest]

  /** The columns that the filter uses. */
  def columns: Seq[FilterColumn]

  /** The number of leaf filters in this filter. */
  def size: Int = 1

  /** Whether the filter keeps every file, except for files whose values are listed. */
  def needsLists: Boolean = false
}

object IndexFilter {

  private[skipping] object Keep extends FileTest {
    override def mayMatch(file: Int): Boolean = true
  }

  /** Keeps every file, because nothing can be proved. */
  case object Always extends IndexFilter {
    override private[skipping] def bound(facts: FilterColumn => Option[ColumnStatisticsView]) = None
    override def columns: Seq[FilterColumn] = Nil
    override def toString: String = "true"
  }

  /** Keeps no file. Used where no row can match, for example in a comparison with NULL. */
  case object Never extends IndexFilter {
    override private[skipping] def bound(facts: FilterColumn => Option[ColumnStatisticsView]) =
      Some(new FileTest { override def mayMatch(file: Int): Boolean = false })
    override def columns: Seq[FilterColumn] = Nil
    override def toString: String = "false"
  }

  /**
   * Matches the rows that match both sides. Skips a file if either side proves that no row matches.
   */
  final case class And(left: IndexFilter, right: IndexFilter) extends IndexFilter {
    override private[skipping] def bound(facts: FilterColumn => Option[ColumnStatisticsView]) =
      (left.bound(facts), right.bound(facts)) match {
        case (Some(l), Some(r)) => Some(new FileTest {
            override def mayMatch(file: Int): Boolean = l.mayMatch(file) && r.mayMatch(file)
            override def select(files: Array[Int], places: Array[Int], count: Int): Int =
              r.select(files, places, l.select(files, places, count))
          })
        case (l, r) => l.orElse(r)
      }
    override def columns: Seq[FilterColumn] = (left.columns ++ right.columns).distinct
    override val size: Int = saturated(left.size, right.size)
    override def needsLists: Boolean = left.needsLists && right.needsLists
    override def toString: String = right match {
      case _: ListedValuesFilter => left.toString // like sketches, lists are not shown
      case _ => s"($left AND $right)"
    }
  }

  /**
   * Matches the rows that match either side. Skips a file if both sides prove that no row matches.
   */
  final case class Or(left: IndexFilter, right: IndexFilter) extends IndexFilter {
    override private[skipping] def bound(facts: FilterColumn => Option[ColumnStatisticsView]) =
      for (l <- left.bound(facts); r <- right.bound(facts)) yield new FileTest {
        override def mayMatch(file: Int): Boolean = l.mayMatch(file) || r.mayMatch(file)
      }
    override def columns: Seq[FilterColumn] = (left.columns ++ right.columns).distinct
    override val size: Int = saturated(left.size, right.size)
    override def needsLists: Boolean = left.needsLists || right.needsLists
    override def toString: String = s"($left OR $right)"
  }

  private def saturated(left: Int, right: Int): Int =
    math.min(left.toLong + right, Int.MaxValue).toInt

  /**
   * `left AND right`. A side that can prove nothing is dropped. Lists of values are tested last,
   * because they must be read from storage.
   */
  def and(left: IndexFilter, right: IndexFilter): IndexFilter = (left, right) match {
    case (Never, _) | (_, Never) => Never
    case (Always, other) => other
    case (other, Always) => other
    case (l, r) if l == r => l
    case (l, lists: ListedValuesFilter) => And(l, lists)
    case (lists: ListedValuesFilter, r) => and(r, lists)
    case (And(l, lists: ListedValuesFilter), r) => and(and(l, r), lists)
    case (l, And(r, lists: ListedValuesFilter)) => and(and(l, r), lists)
    case (l, r) => And(l, r)
  }

  /** `left OR right`. If one side keeps every file, so does the result. */
  def or(left: IndexFilter, right: IndexFilter): IndexFilter = (left, right) match {
    case (Always, _) | (_, Always) => Always
    case (Never, other) => other
    case (other, Never) => other
    case (l, r) if l == r => l
    case (l, r) => Or(l, r)
  }

  /** A filter on one column. */
  sealed trait OfColumn extends IndexFilter {
    def column: FilterColumn
    protected def test(facts: ColumnStatisticsView): FileTest
    override def columns: Seq[FilterColumn] = Seq(column)
    override private[skipping] def bound(facts: FilterColumn => Option[ColumnStatisticsView]) =
      facts(column).map(f => test(seenAs(column, f)))

    protected def min: String = column.sql("_minValue")
    protected def max: String = column.sql("_maxValue")
    protected def orNaN(filter: String): String =
      if (column.mayBeNaN) s"($filter OR ${column.plain.sql("_nan_seen")})" else filter
    protected def literal(value: Any): String = Literal(value, column.comparedType).sql
  }

  private[skipping] def seenAs(
      column: FilterColumn,
      facts: ColumnStatisticsView): ColumnStatisticsView =
    if (column.through.isEmpty) facts else new FunctionStatisticsView(facts, column)

  /** `c IS NULL` is TRUE only for nulls. */
  final case class HasNull(column: FilterColumn) extends OfColumn {
    override protected def test(facts: ColumnStatisticsView): FileTest = new FileTest {
      override def mayMatch(file: Int): Boolean = facts.mayBeNull(file)
    }
    override def toString: String = column.plain.sql("_num_nulls") + " > 0"
  }

  /**
   * Both `c IS NOT NULL` and any predicate that is NULL for a null are TRUE only for non-null
   * values, including NaN.
   */
  final case class HasValue(column: FilterColumn) extends OfColumn {
    override protected def test(facts: ColumnStatisticsView): FileTest = new FileTest {
      override def mayMatch(file: Int): Boolean = facts.mayHaveValue(file)
    }
    override def toString: String =
      column.plain.sql("_num_nulls") + " < num_records"
  }

  /** `c = NaN`, `c >= NaN` and `isnan(c)` are TRUE only for NaN, which equals itself in Spark. */
  final case class HasNaN(column: FilterColumn) extends OfColumn {
    override protected def test(facts: ColumnStatisticsView): FileTest = new FileTest {
      override def mayMatch(file: Int): Boolean = facts.nanSeen(file)
    }
    override def toString: String = column.plain.sql("_nan_seen")
  }

  /**
   * `c < value`, `c <= value`. A value v in column c that makes the comparison TRUE is not null,
   * and it is not NaN, because NaN is above every value. Therefore, min <= v < value (or v <=
   * value). `value` is neither null nor NaN.
   */
  final case class Below(column: FilterColumn, value: Any, orEqual: Boolean) extends OfColumn {
    override protected def test(facts: ColumnStatisticsView): FileTest = {
      val bounds = facts.against(value)
      new FileTest {
        override def mayMatch(file: Int): Boolean =
          if (facts.bounded(file)) {
            val sign = bounds.min(file)
            sign < 0 || orEqual && sign == 0
          } else !facts.empty(file) && facts.mayHaveValue(file)
      }
    }
    override def toString: String = s"$min ${if (orEqual) "<=" else "<"} ${literal(value)}"
  }

  /**
   * `c > value`, `c >= value`. If a value v in column c makes the comparison TRUE, either v is NaN,
   * which is above every value, or value < v <= max (or value <= v). `value` is neither null nor
   * NaN.
   */
  final case class Above(column: FilterColumn, value: Any, orEqual: Boolean) extends OfColumn {
    override protected def test(facts: ColumnStatisticsView): FileTest = {
      val bounds = facts.against(value)
      new FileTest {
        override def mayMatch(file: Int): Boolean = facts.nanSeen(file) || {
          if (facts.bounded(file)) {
            val sign = bounds.max(file)
            sign > 0 || orEqual && sign == 0
          } else !facts.empty(file) && facts.mayHaveValue(file)
        }
      }
    }
    override def toString: String = orNaN(s"$max ${if (orEqual) ">=" else ">"} ${literal(value)}")
  }

  /**
   * `c = value`, `c IN (values)`. The values are sorted, and they are neither null nor NaN. A value
   * v in column c that makes the predicate TRUE equals one of them, and min <= v <= max. The bounds
   * are compared with each of the values, not with the range that the values span. For example, IN
   * (1, 1000000) skips a file with values from 5 to 10. A file whose bounds enclose one of the
   * values may have a sketch, which contains the hash of every value in the file. Equal values have
   * equal hashes, so if the sketch contains none of the hashes of `values`, the file contains no
   * such v.
   */
  final case class OneOf(column: FilterColumn, values: Seq[Any]) extends OfColumn {
    override protected def test(facts: ColumnStatisticsView): FileTest = {
      val encloses =
        if (values.length == 1) {
          val bounds = facts.against(values.head)
          new FileTest {
            override def mayMatch(file: Int): Boolean =
              bounds.min(file) <= 0 && bounds.max(file) >= 0
          }
        } else facts.enclosesOneOf(values.toArray)
      val holds = facts.mayHold(values)
      new FileTest {
        override def mayMatch(file: Int): Boolean =
          if (facts.bounded(file)) encloses.mayMatch(file) && holds.mayMatch(file)
          else !facts.empty(file) && facts.mayHaveValue(file)
      }
    }
    override def toString: String =
      if (values.length == 1) {
        val value = literal(values.head)
        s"($min <= $value AND $max >= $value)"
      } else s"exists(array(${listed(values)(literal)}), v -> v BETWEEN $min AND $max)"
  }

  /**
   * `c` lies in one of the ranges. Both ends of a range belong to it, and they are neither null nor
   * NaN. The ranges are in order and do not overlap. A value v in column c that lies in the range
   * from low to high satisfies low <= v <= max and min <= v <= high. Only the first range whose
   * upper end is not below min needs to be tested. The ranges before it end below min, and
   * therefore below v. The ranges after it begin later, so if its lower end is above max, theirs
   * are also above max.
   */
  final case class Within(column: FilterColumn, ranges: IndexedSeq[(Any, Any)]) extends OfColumn {
    override protected def test(facts: ColumnStatisticsView): FileTest = {
      val (lows, highs) = (ranges.map(_._1).toArray, ranges.map(_._2).toArray)
      new FileTest {
        override def mayMatch(file: Int): Boolean =
          if (facts.bounded(file)) {
            val next = facts.firstNotBelow(highs, facts.min(file))
            next < lows.length && facts.ordering.lteq(lows(next), facts.max(file))
          } else !facts.empty(file) && facts.mayHaveValue(file)
      }
    }
    override def toString: String = {
      val overlaps = ranges.take(20).map { case (low, high) =>
        s"($min <= ${literal(high)} AND $max >= ${literal(low)})"
      }
      val more = if (ranges.length <= 20) Nil else Seq(s"… ${ranges.length} ranges")
      (overlaps ++ more).mkString("(", " OR ", ")")
    }
  }

  /**
   * `c != value`, `c NOT IN (values)`. As in OneOf, the values are sorted, and they are neither
   * null nor NaN. In addition, none of them is ±0.0. The predicate is FALSE or NULL for every row
   * only if every value of the column is null or equals a listed value. That is proved if no NaN
   * was seen and both bounds are the same listed value: all values between them then equal it, even
   * if the bounds are inexact. It would be wrong to use `NOT (min <= value AND value <= max)`,
   * which skips a file with the values 1, 2, 3 for `c != 2`.
   */
  final case class Other(column: FilterColumn, values: Seq[Any]) extends OfColumn {
    override protected def test(facts: ColumnStatisticsView): FileTest = {
      val encloses = facts.enclosesOneOf(values.toArray)
      new FileTest {
        override def mayMatch(file: Int): Boolean = facts.mayHaveValue(file) && (
          facts.nanSeen(file) || !facts.bounded(file) ||
            !(facts.ordering.equiv(facts.min(file), facts.max(file)) && encloses.mayMatch(file)))
      }
    }
    override def toString: String =
      orNaN(s"NOT ($min = $max AND $min IN (${listed(values)(literal)}))")
  }

  /**
   * `c LIKE 'p%'`. Strings are compared as unsigned UTF-8 bytes. Let n be the number of bytes in p.
   * A value v that starts with p satisfies `p <= v <= max`. Because min <= v, the first n bytes of
   * min are at most the first n bytes of v, which are p. This is equivalent to "min <= p or min
   * starts with p".
   */
  final case class Prefix(column: FilterColumn, prefix: UTF8String) extends OfColumn {
    override protected def test(facts: ColumnStatisticsView): FileTest = {
      val bounds = facts.against(prefix)
      new FileTest {
        override def mayMatch(file: Int): Boolean =
          if (facts.bounded(file)) {
            bounds.max(file) >= 0 && (bounds.min(file) <= 0 ||
              facts.min(file).asInstanceOf[UTF8String].startsWith(prefix))
          } else !facts.empty(file) && facts.mayHaveValue(file)
      }
    }
    override def toString: String =
      s"($max >= ${literal(prefix)} AND left($min, ${prefix.numChars}) <= ${literal(prefix)})"
  }

  /**
   * `c NOT LIKE 'p%'`. If both bounds start with p, so do all values between them: if the first
   * byte in which a value differs from p is greater than p's, the value is greater than every
   * string that starts with p, and therefore greater than max. If that byte is smaller, or the
   * value ends before p does, the value is less than min. For nulls, the predicate is NULL.
   */
  final case class NotPrefix(column: FilterColumn, prefix: UTF8String) extends OfColumn {
    override protected def test(facts: ColumnStatisticsView): FileTest = new FileTest {
      override def mayMatch(file: Int): Boolean = facts.mayHaveValue(file) && !(
        facts.bounded(file) && facts.min(file).asInstanceOf[UTF8String].startsWith(prefix) &&
          facts.max(file).asInstanceOf[UTF8String].startsWith(prefix))
    }
    override def toString: String = {
      val like = Literal(UTF8String.concat(prefix, UTF8String.fromString("%")), column.dataType)
      s"NOT ($min LIKE ${like.sql} AND $max LIKE ${like.sql})"
    }
  }

  /**
   * `l < r`, `l <= r` for two columns. In a row that makes the comparison TRUE, either r is NaN, or
   * l and r are values with l.min <= l < r <= r.max (or l <= r). If l is NaN, then r is also NaN,
   * and the comparison is `<=`.
   */
  final case class ColumnBelow(left: FilterColumn, right: FilterColumn, orEqual: Boolean)
      extends IndexFilter {
    override def columns: Seq[FilterColumn] = Seq(left, right)
    override private[skipping] def bound(facts: FilterColumn => Option[ColumnStatisticsView]) =
      for (l <- facts(left).map(seenAs(left, _)); r <- facts(right).map(seenAs(right, _)))
        yield new FileTest {
          override def mayMatch(file: Int): Boolean =
            l.mayHaveValue(file) && r.mayHaveValue(file) && (r.nanSeen(file) ||
              !l.empty(file) && !r.empty(file) && (!l.bounded(file) || !r.bounded(file) || {
                val sign = l.ordering.compare(l.min(file), r.max(file))
                sign < 0 || orEqual && sign == 0
              }))
        }
    override def toString: String = {
      val sign = if (orEqual) "<=" else "<"
      val filter = s"${left.sql("_minValue")} $sign ${right.sql("_maxValue")}"
      if (right.mayBeNaN) s"($filter OR ${right.plain.sql("_nan_seen")})" else filter
    }
  }

  /** The first values of a list, as shown to users. */
  private def listed(values: Seq[Any])(literal: Any => String): String = {
    val more = if (values.length <= 20) Nil else Seq(s"… ${values.length} values")
    (values.take(20).map(literal) ++ more).mkString(", ")
  }

  /** The values in their type's order. */
  private[skipping] def sorted(column: FilterColumn, values: Iterable[Any]): Seq[Any] =
    values.toSeq.sorted(TypeUtils.getInterpretedOrdering(column.comparedType))
}
