package io.pyzorder.skipping.joins

import org.apache.spark.sql.catalyst.expressions.{ExprId, Expression}

import io.pyzorder.skipping.files.{FileRanges, PlanState, ScannedColumn}
import io.pyzorder.skipping.predicate.JoinKeyFilter

/**
 * What the joins of a query say about the rows of a scan that the query needs. Broadcast sides are
 * denoted by their positions in a list, because ScanWithKeysExec compares them as its children.
 *
 * @param keys   the columns of the scan that must equal keys of broadcast sides
 * @param ranges the columns of the scan whose values must occur in files of other scans
 */
private[joins] final case class ScanRestrictions(keys: Seq[ScanKeys], ranges: Seq[ScanRanges]) {

  def isEmpty: Boolean = keys.isEmpty && ranges.isEmpty

  /** The positions of the sides that are needed. */
  def sides: Seq[Int] =
    (keys.flatMap(_.sides) ++ ranges.flatMap(_.sources).flatMap(_.restrictions.sides)).distinct

  /** The restricted columns. */
  def columns: Seq[Expression] = keys.flatMap(_.keys.map(_.column)) ++ ranges.map(_.column)

  /** The same restrictions for another list of sides, given the new position of each side. */
  def moved(positions: Int => Int): ScanRestrictions = ScanRestrictions(
    keys.map(key => key.copy(sides = key.sides.map(positions))(key.from)),
    ranges.map(_.restricted(_.moved(positions))))

  /**
   * Only the restrictions that are derived from remaining keys, and not by way of the files of the
   * scan with these columns.
   */
  def only(remaining: ScanKeys => Option[ScanKeys], without: Seq[ExprId]): ScanRestrictions =
    ScanRestrictions(
      keys.flatMap(remaining(_)), ranges.flatMap(_.only(remaining, without)))

  /** Adds ranges, in place of older ranges of the same columns. */
  def withRanges(more: ScanRanges): ScanRestrictions =
    copy(ranges = ranges.filterNot(_.isLike(more)) :+ more)

  /**
   * The filters on the scan.
   *
   * @param filters returns the filters derived from keys
   */
  def fileRanges(
      plan: PlanState,
      filters: Seq[ScanKeys] => Seq[JoinKeyFilter]): Seq[FileRanges] =
    ranges.flatMap(_.filter(plan, filters))
}

private[joins] object ScanRestrictions {
  val none: ScanRestrictions = ScanRestrictions(Nil, Nil)
}

/** A scan's column that must equal one of a join's keys, and the position of that key. */
private[joins] final case class ScanKey(column: Expression, ordinal: Int)

/**
 * The columns of a scan that must equal keys of the same source. The comparison of two instances
 * ignores the source's broadcast sides.
 *
 * @param sides  the positions of the source's broadcast sides
 * @param values how the source computes its keys from the rows of the sides
 */
private[joins] final case class ScanKeys(
    keys: Seq[ScanKey],
    sides: Seq[Int],
    values: BroadcastKeys.Values)(
    @transient val from: BroadcastKeys) {

  /** The positions of the sides that restrict the source's rows. */
  def sidesOfRestrictions: Seq[Int] =
    sides.slice(1, 1 + from.restrictions.map(_.from.sides.size).sum)

  /**
   * The same keys without the restrictions that need dropped sides. None if the keys themselves
   * need one.
   *
   * @param isDropped whether the side at a position is dropped
   */
  def without(isDropped: Int => Boolean): Option[ScanKeys] = {
    val dropped = from.sides.zip(sides).collect { case (side, i) if isDropped(i) => side }
    def needs(keys: BroadcastKeys): Boolean = keys.sides.exists(side => dropped.exists(_ eq side))
    val kept = from.restrictedIf(restriction => !needs(restriction.from))
    val positions = kept.sides.map(side => sides(from.sides.indexWhere(_ eq side)))
    if (needs(kept)) None else Some(ScanKeys(keys, positions, kept.values)(kept))
  }
}

/**
 * A column of a scan whose values must occur in files of other scans.
 *
 * @param column the scan's column, or an order-preserving function of it
 * @param limit  the maximum number of ranges
 */
private[joins] final case class ScanRanges(
    column: Expression,
    sources: Seq[ScanRanges.Source],
    limit: Int) {

  /** Whether both restrict the same column by the same columns of other scans. */
  def isLike(other: ScanRanges): Boolean =
    column == other.column && sources.map(_.column) == other.sources.map(_.column)

  def restricted(change: ScanRestrictions => ScanRestrictions): ScanRanges =
    copy(sources = sources.map(s => s.withRestrictions(change(s.restrictions))))

  /** See ScanRestrictions. None if no restrictions remain. */
  def only(
      remaining: ScanKeys => Option[ScanKeys],
      without: Seq[ExprId]): Option[ScanRanges] = {
    val kept = sources.map(source =>
      source.withRestrictions(
        if (source.of == without) ScanRestrictions.none
        else source.restrictions.only(remaining, without)))
    if (kept.forall(_.restrictions.isEmpty)) None else Some(copy(sources = kept))
  }

  /** The filter on the column. None if the restrictions leave all files of the other scans. */
  def filter(plan: PlanState, filters: Seq[ScanKeys] => Seq[JoinKeyFilter]): Option[FileRanges] = {
    val columns = sources.map(_.restricted(plan, filters))
    val isNarrower = columns.zip(sources).exists { case (restricted, source) =>
      restricted.scan.estimated.size < source.column.scan.estimated.size
    }
    if (isNarrower) Some(FileRanges(plan.bounds(columns, column.dataType, limit), column)) else None
  }
}

private[joins] object ScanRanges {

  /**
   * A column that provides values. Tasks, to which Spark sends parts of the plan, do not need it.
   *
   * @param column       the column of the scan without restrictions
   * @param restrictions what restricts the files of its scan
   * @param of           identifies the scan in the plan; ignored in comparisons
   */
  final case class Source(
      @transient column: ScannedColumn,
      restrictions: ScanRestrictions)(
      val of: Seq[ExprId]) {

    def withRestrictions(others: ScanRestrictions): Source = copy(restrictions = others)(of)

    def restricted(
        plan: PlanState,
        filters: Seq[ScanKeys] => Seq[JoinKeyFilter]): ScannedColumn = {
      val keys = filters(restrictions.keys)
      val ranges = restrictions.fileRanges(plan, filters)
      if (keys.isEmpty && ranges.isEmpty) column else column.withFilters(keys, ranges)
    }
  }
}
