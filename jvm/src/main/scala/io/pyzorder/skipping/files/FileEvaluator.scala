package io.pyzorder.skipping.files

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.execution.datasources.{FileIndex, FileStatusWithMetadata}

import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.model.ReadSettings
import io.pyzorder.skipping.predicate.{FileTest, FilterColumn}
import io.pyzorder.storage.TableFolder

/** A file's outcome. */
sealed trait PruningResult

object PruningResult {

  /** It may hold matching rows. */
  case object Selected extends PruningResult

  /** Proved: no row of it makes the predicate TRUE. */
  case object Skipped extends PruningResult

  /** The index does not know it, or not as it is now. */
  case object Unindexed extends PruningResult
}

/**
 * One index snapshot put to one scan: which files of its table may match?
 *
 * @param folder       the table's, which names the files
 * @param snapshotName no other of the table has it
 * @param settings     the scan's
 * @param facts        the columns as the scan may use them
 * @param test         which entries may match
 * @param knows        whether there are statistics of a column
 */
final class FileEvaluator(
    folder: TableFolder,
    snapshotName: String,
    snapshot: IndexSnapshot,
    settings: ReadSettings,
    val facts: SnapshotStatistics,
    test: FileTest,
    val knows: FilterColumn => Boolean) {

  /**
   * The number of each file's entry; -1: there is none of the file as its status says it is.
   *
   * @param files of one partition of `listing`
   */
  def entries(listing: FileIndex, files: Array[FileStatusWithMetadata]): Array[Int] =
    MatchedListing.of(listing)
      .entries(s"${folder.root} ${settings.structural}", snapshotName, files)(entry)

  private def entry(status: FileStatus): Int = {
    val name = folder.relativize(status.getPath)
    // Read by its path, a table has no files elsewhere: what its index says of them is not its own.
    val known = folder.isInCatalog || !TableFolder.isWhole(name)
    val entry = if (known) snapshot.find(name) else -1
    if (entry >= 0 && valid(entry, status)) entry else -1
  }

  /** Bytes of the file of this entry. */
  def size(entry: Int): Long = snapshot.size(entry)

  /** Rows of the file of this entry. */
  def numRecords(entry: Int): Long = snapshot.numRecords(entry)

  /** What becomes of the files of these entries, as far as their verdict is still null. */
  def judge(entries: Array[Int], verdicts: Array[PruningResult]): Unit = {
    val places = new Array[Int](entries.length)
    var count = 0
    var i = 0
    while (i < entries.length) {
      if (entries(i) >= 0 && verdicts(i) == null) {
        verdicts(i) = PruningResult.Skipped
        if (snapshot.numRecords(entries(i)) != 0) {
          places(count) = i
          count += 1
        }
      }
      i += 1
    }
    val selected = test.select(entries, places, count)
    i = 0
    while (i < selected) {
      verdicts(places(i)) = PruningResult.Selected
      i += 1
    }
  }

  /** Whether the file of this entry would be skipped. */
  def skips(entry: Int): Boolean = snapshot.numRecords(entry) == 0 || !test.mayMatch(entry)

  private def valid(entry: Int, status: FileStatus): Boolean =
    snapshot.size(entry) == status.getLen &&
      snapshot.modificationTime(entry) == status.getModificationTime &&
      snapshot.readSettings(entry).structural == settings.structural
}
