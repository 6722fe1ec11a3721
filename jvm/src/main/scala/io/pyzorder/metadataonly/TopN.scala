package io.pyzorder.metadataonly

import org.apache.spark.sql.catalyst.expressions.{Ascending, NullsFirst, SortOrder}

import io.pyzorder.skipping.files.{ExaminedFile, IndexedStatistics, KnownFile, PruningResult}
import io.pyzorder.skipping.predicate.FilterColumn

/**
 * `ORDER BY column … LIMIT limit`: which files can hold one of the first rows.
 *
 * Proof. Let `last` be a place in the order such that at least `limit` rows that pass the filters
 * are known to stand at it or before it. A file whose rows all stand strictly beyond `last` adds
 * none to the first `limit` rows; further sort keys only decide among rows of one place, and ties
 * at `last` itself keep their files. Rows are known to pass only in files of which all do, and
 * only as many as the index has counted. A counted file has a row at `last` or before it, so that
 * it is never itself left out. NaN is above every bound and what may be NaN is not counted on
 * where it would stand last; a null stands before or after all values, as the query says, and
 * nulls that are not counted may be anywhere.
 */
final case class TopN(column: FilterColumn, ascending: Boolean, nullsFirst: Boolean, limit: Int) {

  /** Whether each file must be opened. */
  def open(files: Seq[ExaminedFile]): ExaminedFile => Boolean = {
    val facts = files.iterator.flatMap(_.known).flatMap(_.facts(column)).take(1).toSeq.headOption
    val last = facts.flatMap(lastPlace(files, _))
    file => file.verdict != PruningResult.Skipped && !last.exists(place => isBeyond(file, place))
  }

  /** None: the place of the nulls that come first; else the place of a value. */
  private type Place = Option[Any]

  private final case class Group(place: Place, rows: Long)

  /** The place that `limit` rows do not go beyond; None: so many are not known. */
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

  /** Rows of a file, each group with a place that none of it is beyond. */
  private def groupsOf(file: KnownFile): Seq[Group] = file.facts(column).toSeq.flatMap { facts =>
    val nulls = facts.nullCount(file.entry)
    val first = if (nullsFirst && nulls > 0) Seq(Group(None, nulls)) else Nil
    // Of unknown nulls that come first none is beyond the values; of others nothing is known.
    val values = if (nulls >= 0) file.numRecords - nulls else if (nullsFirst) file.numRecords else 0
    val bounded = facts.bounded(file.entry) && !(ascending && facts.nanSeen(file.entry))
    if (!bounded || values <= 0) first
    else first :+ Group(
      Some(if (ascending) facts.max(file.entry) else facts.min(file.entry)), values)
  }

  private def isBeyond(file: ExaminedFile, place: Place): Boolean = file.known.exists { known =>
    known.facts(column).exists { facts =>
      val i = known.entry
      // Nulls that come last are beyond every value, and then `place` is a value.
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

  /** The first sort key is a column with an order; None: something else. */
  def of(order: Seq[SortOrder], limit: Int, scan: IndexedScan): Option[TopN] =
    for {
      first <- order.headOption if limit > 0
      column <- scan.column(first.child)
    } yield TopN(column, first.direction == Ascending, first.nullOrdering == NullsFirst, limit)
}
