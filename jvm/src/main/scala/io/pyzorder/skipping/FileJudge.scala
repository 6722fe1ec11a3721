package io.pyzorder.skipping

import scala.collection.mutable

import org.apache.hadoop.fs.FileStatus

import io.pyzorder.index.{ColumnArrays, IndexSnapshot, ReadSettings}
import io.pyzorder.publish.TableFolder

/** A file's outcome. */
sealed trait Verdict

object Verdict {

  /** It may hold matching rows. */
  case object Selected extends Verdict

  /** Proved: no row of it makes the predicate TRUE. */
  case object Skipped extends Verdict

  /** The index does not know it, or not as it is now. */
  case object Unindexed extends Verdict
}

/**
 * One index snapshot put to one scan: which files of its table may match?
 *
 * @param folder   the table's, which names the files
 * @param settings the scan's
 * @param columns  the arrays of a column; None: not indexed, or not as the scan reads it
 */
final class FileJudge(
    folder: TableFolder,
    snapshot: IndexSnapshot,
    filter: IndexFilter,
    settings: ReadSettings,
    columns: FilterColumn => Option[ColumnArrays]) {

  private val asked = mutable.HashMap.empty[FilterColumn, Option[IndexedFacts]]

  private val test: FileTest = filter.bind(facts)

  /** The column's statistics as the scan may use them, its cast aside; None: there are none. */
  def facts(column: FilterColumn): Option[IndexedFacts] =
    asked.getOrElseUpdate(column,
      columns(column).map(new IndexedFacts(snapshot, _, settings.temporal)))

  /** Whether the index has statistics of the column. */
  def knows(column: FilterColumn): Boolean = facts(column).isDefined

  /** The number of the file's entry; -1: there is none of the file as `status` says it is. */
  def entry(status: FileStatus): Int = {
    val entry = snapshot.find(folder.relativize(status.getPath))
    if (entry >= 0 && valid(entry, status)) entry else -1
  }

  /** Rows of the file of this entry. */
  def numRecords(entry: Int): Long = snapshot.numRecords(entry)

  /** What becomes of the file, which is as `status` says now. */
  def verdict(status: FileStatus): Verdict = {
    val entry = this.entry(status)
    if (entry < 0) Verdict.Unindexed
    else if (snapshot.numRecords(entry) == 0 || !test.mayMatch(entry)) Verdict.Skipped
    else Verdict.Selected
  }

  private def valid(entry: Int, status: FileStatus): Boolean =
    snapshot.size(entry) == status.getLen &&
      snapshot.modificationTime(entry) == status.getModificationTime &&
      snapshot.readSettings(entry).structural == settings.structural
}
