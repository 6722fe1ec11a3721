package io.pyzorder.skipping

import org.apache.hadoop.fs.{FileStatus, Path}

import io.pyzorder.index.{ColumnArrays, IndexSnapshot, ReadSettings}

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
 * @param root     the folder that the entries' paths are relative to
 * @param settings the scan's
 * @param columns  the arrays of a column; None: not indexed, or not as the scan reads it
 */
final class FileJudge(
    root: Path,
    snapshot: IndexSnapshot,
    filter: IndexFilter,
    settings: ReadSettings,
    columns: FilterColumn => Option[ColumnArrays]) {

  private val prefix = if (root.toString.endsWith("/")) root.toString else root.toString + "/"

  private val facts: Map[FilterColumn, ColumnFacts] = filter.columns.flatMap { column =>
    columns(column).map(column -> new IndexedFacts(snapshot, _, settings.temporal))
  }.toMap

  private val test: FileTest = filter.bind(facts.get)

  /** Whether the index has statistics of the column. */
  def knows(column: FilterColumn): Boolean = facts.contains(column)

  /** What becomes of the file, which is as `status` says now. */
  def verdict(status: FileStatus): Verdict = {
    val path = status.getPath.toString
    val entry = if (path.startsWith(prefix)) snapshot.find(path.substring(prefix.length)) else -1
    if (entry < 0 || !valid(entry, status)) Verdict.Unindexed
    else if (snapshot.numRecords(entry) == 0 || !test.mayMatch(entry)) Verdict.Skipped
    else Verdict.Selected
  }

  private def valid(entry: Int, status: FileStatus): Boolean =
    snapshot.size(entry) == status.getLen &&
      snapshot.modificationTime(entry) == status.getModificationTime &&
      snapshot.readSettings(entry).structural == settings.structural
}
