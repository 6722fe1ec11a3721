package io.pyzorder.skipping.predicate

import org.apache.spark.unsafe.types.UTF8String

import io.pyzorder.skipping.predicate.IndexFilter.{
  Above, Below, ColumnBelow, HasNaN, HasNull, HasValue
}
import io.pyzorder.skipping.predicate.IndexFilter.{
  sorted, Never, NotPrefix, OneOf, Other, Prefix, Within
}

/**
 * Builds filters for comparisons of a column with values. The filters also handle nulls and NaN,
 * which bounds do not cover.
 */
private[skipping] object ColumnFilters {

  /** `c < NaN` is TRUE for every value except NaN, and `c <= NaN` is TRUE for every value. */
  def below(c: FilterColumn, v: Any, orEqual: Boolean): IndexFilter =
    if (isNaN(v)) HasValue(c) else Below(c, v, orEqual)

  /** Nothing is above NaN, and only NaN equals it. */
  def above(c: FilterColumn, v: Any, orEqual: Boolean): IndexFilter =
    if (!isNaN(v)) Above(c, v, orEqual) else if (orEqual) HasNaN(c) else Never

  /** Two values are equal only if neither is greater than the other. */
  def columnsEqual(a: FilterColumn, b: FilterColumn): IndexFilter =
    IndexFilter.and(ColumnBelow(a, b, orEqual = true), ColumnBelow(b, a, orEqual = true))

  def eitherNull(a: FilterColumn, b: FilterColumn): IndexFilter =
    IndexFilter.or(HasNull(a), HasNull(b))

  /** `c` equals one of the values. A null in the list equals nothing. */
  def oneOf(c: FilterColumn, list: Iterable[Any]): IndexFilter = {
    val (nans, values) = list.filter(_ != null).partition(isNaN)
    val finite = if (values.isEmpty) Never else OneOf(c, sorted(c, values))
    if (nans.isEmpty) finite else IndexFilter.or(HasNaN(c), finite)
  }

  /**
   * `c` lies in one of the ranges or, if `orNaN` is true, is NaN. The ranges have the form that
   * Within requires.
   */
  def within(c: FilterColumn, ranges: IndexedSeq[(Any, Any)], orNaN: Boolean): IndexFilter = {
    val finite = if (ranges.isEmpty) Never else Within(c, ranges)
    if (orNaN && c.mayBeNaN) IndexFilter.or(HasNaN(c), finite) else finite
  }

  /**
   * `c` equals none of the values. Removing a value from the list is safe, because the filter then
   * only keeps more files. Two kinds of values are removed: NaN, which the bounds do not cover, and
   * ±0.0, which are equal here but not in every hash set.
   */
  def other(c: FilterColumn, list: Iterable[Any]): IndexFilter = {
    val values = list.filterNot(v => isNaN(v) || isZero(v))
    if (values.isEmpty) HasValue(c) else Other(c, sorted(c, values))
  }

  def prefix(c: FilterColumn, p: UTF8String): IndexFilter =
    if (p.numBytes == 0) HasValue(c) else Prefix(c, p)

  def notPrefix(c: FilterColumn, p: UTF8String): IndexFilter =
    if (p.numBytes == 0) Never else NotPrefix(c, p)

  private[predicate] def isNaN(value: Any): Boolean = value match {
    case d: Double => d.isNaN
    case f: Float => f.isNaN
    case _ => false
  }

  private def isZero(value: Any): Boolean = value match {
    case d: Double => d == 0.0
    case f: Float => f == 0.0f
    case _ => false
  }
}
