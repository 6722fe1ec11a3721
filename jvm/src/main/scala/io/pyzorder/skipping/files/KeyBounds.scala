package io.pyzorder.skipping.files

import scala.util.control.NonFatal

import org.apache.spark.sql.types.DataType

import io.pyzorder.skipping.predicate.{FilterColumn, KeyRanges, KeyValues}

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
        for (file <- read) {
          val known = for (k <- file.known; facts <- k.facts(source.column)) yield (facts, k.entry)
          known.fold(ranges.addUnknown()) { case (facts, entry) =>
            ranges.add(source.column, facts, entry)
          }
        }
        source.text(read.size)
      }
      ranges.result.map(Known(_, texts.mkString(" and ")))
    } catch { case NonFatal(_) => None }
}

private[skipping] object KeyBounds {

  /** @param text a description of the files, used only for display */
  private[files] final case class Known(ranges: KeyValues.Ranges, text: String)
}

/** A column that a scan reads. */
private[skipping] final case class ScannedColumn(scan: FilteredScan, column: FilterColumn) {

  private[files] def text(files: Int): String =
    s"${scan.index.table}.${column.plain.sql("")} " +
      s"(${if (files == 1) "1 file" else s"$files files"})"
}
