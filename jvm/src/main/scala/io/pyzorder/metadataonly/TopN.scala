package io.pyzorder.metadataonly

import org.apache.spark.sql.catalyst.expressions.{Ascending, NullsFirst, SortOrder}

import io.pyzorder.skipping.files.{ExaminedFile, IndexedStatistics, KnownFile, PruningResult}
import io.pyzorder.skipping.predicate.FilterColumn

/**
 * Finds the files that can contain one of the rows that `ORDER BY column … LIMIT limit` returns.
 *
 * Proof. Let `last` be a position in the order such that at least `limit` rows that pass the
 * filters are known to be at or before it. A file whose rows are all strictly beyond `last`
 * contributes none of the first `limit` rows. Further sort keys only order rows at the same
 * position, and files with rows at `last` itself are kept. Rows are counted only in files in which
 * all rows pass, and only if the index contains the number of rows. A file with counted rows has a
 * row at or before `last`, so it is never left out. NaN is above every bound. In ascending order,
 * NaN sorts after all other values, so the values of a file that may contain NaN are not counted.
 * In descending order, NaN sorts before all other values, so a file that may contain NaN is not
 * beyond any value. Nulls are before or after all values, as the query specifies. If a file's null
 * count is unknown, any of the file's rows may be null.
 */
final case class TopN(column: FilterColumn, ascending: Boolean, nullsFirst: Boolean, limit: Int) {

  /** Returns a predicate that says whether one of these files must be opened. */
  def open(files: Seq[ExaminedFile]): ExaminedFile => Boolean = {
    val facts = files.iterator.flatMap(_.known).flatMap(_.facts(column)).take(1).toSeq.headOption
    val last = facts.flatMap(lastPlace(files, _))
    file => !last.exists(place => isBeyond(file, place))
  }

  /** A position in the order: a value, or None for nulls that come first. */
  private type Place = Option[Any]

  private final case class Group(place: Place, rows: Long)

  /**
   * A position such that at least `limit` rows are known to be at or before it, or None if there is
   * no such position.
   */
  private def lastPlace(files: Seq[ExaminedFile], any: IndexedStatistics): Option[Place] = {
    val order: Ordering[Any] = if (ascending) any.ordering else any.ordering.reverse
    val groups = files.filter(_.verdict == PruningResult.Selected).flatMap(_.known).filter(
      _.allRows)
      .flatMap(groupsOf).sortWith((a, b) =>
        (a.place, b.place) match {
          case (None, other) => other.isDefined
          case (_, None) => false
          case (Some(x), Some(y)) => order.lt(x, y)
        })
    var rows = 0L
    groups.find { group =>
      rows += group.rows
      rows >= limit
    }.map(_.place)
  }

  /**
   * Groups of a file's rows. Each group has a position, and all rows of the group are at or before
   * that position.
   */
  private def groupsOf(file: KnownFile): Seq[Group] = file.facts(column).toSeq.flatMap { facts =>
    val nulls = facts.nullCount(file.entry)
    val first = if (nullsFirst && nulls > 0) Seq(Group(None, nulls)) else Nil
    // If the null count is unknown and nulls come first, all rows are counted, because all of them
    // are at or before the bound that comes last in the order. If it is unknown and nulls come
    // last, no rows are counted, because the number of values is unknown.
    val values = if (nulls >= 0) file.numRecords - nulls else if (nullsFirst) file.numRecords else 0
    val bounded = facts.bounded(file.entry) && !(ascending && facts.nanSeen(file.entry))
    if (!bounded || values <= 0) first
    else first :+ Group(
      Some(if (ascending) facts.max(file.entry) else facts.min(file.entry)), values)
  }

  private def isBeyond(file: ExaminedFile, place: Place): Boolean = file.known.exists { known =>
    known.facts(column).exists { facts =>
      val i = known.entry
      // Nulls that come last are beyond every value, so they are beyond `place` if it is a value.
      val nulls = !facts.mayBeNull(i) || !nullsFirst && place.isDefined
      val values = !facts.mayHaveValue(i) || (place match {
        case None => true
        case Some(value) if !facts.bounded(i) || !ascending && facts.nanSeen(i) => false
        case Some(value) =>
          if (ascending) facts.ordering.gt(facts.min(i), value)
          else facts.ordering.lt(facts.max(i), value)
      })
      nulls && values
    }
  }
}

object TopN {

  /** Returns None unless the first sort key is a column of the files and `limit` is positive. */
  def of(order: Seq[SortOrder], limit: Int, scan: IndexedScan): Option[TopN] =
    for {
      first <- order.headOption if limit > 0
      column <- scan.column(first.child)
    } yield TopN(column, first.direction == Ascending, first.nullOrdering == NullsFirst, limit)
}
