package io.pyzorder.skipping.files

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.DataType

import io.pyzorder.skipping.predicate.{FilterColumn, JoinKeyFilter, KeyRanges, KeyValues}

/**
 * Ranges that contain every value that a key has in the files of some scans. In a plan, the same
 * columns of the same scans share one KeyBounds (see PlanState), so instances are compared by
 * identity.
 *
 * When a scan that uses the ranges lists its files, it first pins the files from which the ranges
 * are derived. The other scans then read at most these files: all scans of a plan use the pinned
 * list, and the ranges are derived with the same filters that the other scans use to select files
 * from it. A file is compared with its state in the store when its scan is pinned. If the file has
 * changed, or if the index has no entry or no bounds for it, there are no ranges. Skipped files are
 * also compared, because the other scan will read them if they have changed.
 *
 * No scan waits for another, because only the lists of files are needed, so there are no deadlocks.
 * The ranges of the other scans' own indexes are derived first. These indexes existed before this
 * object was created, so there are no cycles. Locks are taken in the order index, ranges, plan.
 *
 * @param sources columns whose values include every value of the key
 * @param limit   the maximum number of ranges
 */
private[skipping] final class KeyBounds(
    val sources: Seq[ScannedColumn],
    dataType: DataType,
    limit: Int) {
  import KeyBounds._

  @volatile private var pinned: Option[Option[Known]] = None

  @volatile private var estimate: Option[(Seq[TableState], Option[Known])] = None

  /** Determines the ranges for the execution of the plan. */
  private[files] def pin(): Unit = synchronized {
    if (pinned.isEmpty) {
      val found = derived(_.pinned)
      pinned = Some(found.filter(_ => sources.forall(_.scan.index.keptListing)))
    }
  }

  /** The ranges that the execution uses or, before the execution, a preview. */
  private[files] def current: Option[Known] = pinned.getOrElse(estimated)

  /** The ranges for estimates. They are derived once for each state of the files. */
  private[files] def estimated: Option[Known] =
    try {
      val states = sources.map(_.scan.state)
      estimate.collect { case (of, known) if of == states => known }.getOrElse {
        val known = derived(_.estimated)
        estimate = Some(states -> known)
        known
      }
    } catch { case NonFatal(_) => None }

  /** A source that cannot be listed proves nothing. If its own scan executes, that scan fails. */
  private def derived(files: FilteredScan => IndexedSeq[ExaminedFile]): Option[Known] =
    try {
      val ranges = new KeyRanges(dataType, limit)
      val texts = sources.map { source =>
        val read = files(source.scan)
        read.foreach(add(source, _, ranges))
        source.text(read.size)
      }
      ranges.result.map(Known(_, texts.mkString(" and ")))
    } catch { case NonFatal(_) => None }
}

private[skipping] object KeyBounds {

  /**
   * The share of a scan's files that may contain a value which a single file of the sources
   * contains, on average over some of these files. None if there are no files. The keys and ranges
   * of the scans are ignored, so the share is computed only once for each plan.
   *
   * @param column the scan's column, or an order-preserving function of it
   */
  def shareOfOne(
      sources: Seq[ScannedColumn],
      scan: FilteredScan,
      column: Expression): Option[Double] = {
    val (known, own) = (sources.map(s => s.copy(scan = s.scan.unfiltered)), scan.unfiltered)
    scan.index.plan.share((known, own, column))(share(known, own, column))
  }

  /**
   * Whether almost all files of the scan have bounds that enclose any value of the column. Few
   * files can then be skipped by their bounds, whichever keys the column must equal. False if this
   * is not known, for example because the index is too large for the driver.
   */
  def isEverywhere(scan: FilteredScan, column: Expression): Boolean =
    try column match {
        case FilterColumn(own) if scan.index.numFiles <= MaxFiles =>
          val files = sampled(scan.unfiltered.estimated, MaxTests)
          files.forall(_.known.exists(known => known.facts(own).exists(_.bounded(known.entry)))) &&
          shareOfOne(Seq(ScannedColumn(scan, own)), scan, column).exists(_ >= Everywhere)
        case _ => false
      }
    catch { case NonFatal(_) => false }

  /** Whether files of the scan may have sketches of the column. */
  def hasSketches(scan: FilteredScan, column: Expression): Boolean =
    factsOf(scan, column).exists(_.hasSketches)

  /** Whether the index has statistics of the column. */
  def isIndexed(scan: FilteredScan, column: Expression): Boolean =
    try factsOf(scan, column).nonEmpty
    catch { case NonFatal(_) => true }

  /** What the index knows about the column in the first file. */
  private def factsOf(scan: FilteredScan, column: Expression) = column match {
    case FilterColumn(own) =>
      scan.unfiltered.estimated.iterator.flatMap(_.known).take(1).flatMap(_.facts(own))
    case _ => Iterator.empty
  }

  private def share(
      sources: Seq[ScannedColumn],
      scan: FilteredScan,
      column: Expression): Option[Double] = {
    val files = sampled(scan.estimated, MaxTests)
    if (files.isEmpty) None
    else {
      val found = sources.flatMap(source => source.scan.estimated.map(source -> _))
      val shares = sampled(found.toIndexedSeq, MaxSampled).map { case (source, file) =>
        val ranges = new KeyRanges(column.dataType, 1)
        add(source, file, ranges)
        val filter = ranges.result.flatMap(JoinKeyFilter.of(column, _, ""))
        val kept = filter.fold(files)(f => ExaminedFile.matching(files, f.filter))
        kept.size.toDouble / files.size
      }
      if (shares.isEmpty) None else Some(shares.sum / shares.size)
    }
  }

  /** At most `number` elements, at equal distances. */
  private def sampled[T](all: IndexedSeq[T], number: Int): IndexedSeq[T] =
    if (all.size <= number) all
    else (0 until number).map(i => all((i.toLong * all.size / number).toInt))

  private def add(source: ScannedColumn, file: ExaminedFile, ranges: KeyRanges): Unit = {
    val known = for (k <- file.known; facts <- k.facts(source.column)) yield (facts, k.entry)
    known.fold(ranges.addUnknown()) { case (facts, entry) =>
      ranges.add(source.column, facts, entry)
    }
  }

  private val MaxSampled = 8

  /** The maximum number of files that are compared with each range. */
  private val MaxTests = 1000

  /** See isEverywhere. */
  private val Everywhere = 0.95

  /** With more files than this, it takes too long to see whether a column is everywhere. */
  private val MaxFiles = 100000

  /** @param text a description of the files, used only for display */
  private[files] final case class Known(ranges: KeyValues.Ranges, text: String)
}

/** A column that a scan reads. */
private[skipping] final case class ScannedColumn(scan: FilteredScan, column: FilterColumn) {

  /** The same column of the same scan, but without the files that these filters rule out. */
  def withFilters(keys: Seq[JoinKeyFilter], ranges: Seq[FileRanges]): ScannedColumn =
    copy(scan = scan.withFilters(keys, ranges))

  /** The column, the number of files, and the join keys that leave only these files. */
  private[files] def text(files: Int): String = {
    val number = if (files == 1) "1 file" else s"$files files"
    val keys = scan.index.joins.map(_.text) ++
      scan.index.ranges.flatMap(_.current).map(_.text).filter(_.contains(ScannedColumn.LeftBy))
    val cause = if (keys.isEmpty) "" else ScannedColumn.LeftBy + keys.distinct.mkString(" and ")
    s"${scan.index.table}.${column.plain.sql("")} ($number$cause)"
  }
}

private[skipping] object ScannedColumn {
  private val LeftBy = " left by "
}
