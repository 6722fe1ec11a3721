package io.pyzorder.skipping.files

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.execution.datasources.{FileIndex, FileStatusWithMetadata}

import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.model.ReadSettings
import io.pyzorder.publish.reading.IndexedFiles
import io.pyzorder.skipping.predicate.{FileTest, FilterColumn}
import io.pyzorder.storage.TableFolder

/** The result of evaluating one file. */
sealed trait PruningResult

object PruningResult {

  /** The file may contain matching rows. */
  case object Selected extends PruningResult

  /** The file provably contains no row that makes the predicate TRUE. */
  case object Skipped extends PruningResult

  /** The index has no valid entry for the file. */
  case object Unindexed extends PruningResult
}

/**
 * Evaluates an index snapshot for one scan and determines which of the indexed files may match.
 *
 * @param folder   the table's folder; file names are relative to it
 * @param settings the scan's read settings
 * @param facts    the statistics that the scan may use
 * @param question what `test` evaluates
 * @param test     determines which entries may match
 * @param knows    returns whether there are statistics for a column
 */
final class FileEvaluator(
    folder: TableFolder,
    snapshot: IndexSnapshot,
    settings: ReadSettings,
    val facts: SnapshotStatistics,
    val question: EvaluatedPartitions.Question,
    test: FileTest,
    val knows: FilterColumn => Boolean) {

  /**
   * The position of each file's entry in the snapshot, or -1 if no entry matches the file's status.
   *
   * @param files the files of one partition of `listing`
   */
  def entries(listing: FileIndex, files: IndexedSeq[FileStatusWithMetadata]): Array[Int] = {
    val listed = files match {
      case indexed: IndexedFiles => indexed.entriesIn(snapshot)
      case _ => None
    }
    MatchedListing.of(listing).entries(key, question.snapshot, files) { i =>
      listed match {
        case Some(entries) => if (isReadAlike(entries(i))) entries(i) else -1
        case None => entry(files(i).fileStatus)
      }
    }
  }

  private def key: String = s"${folder.root} ${settings.structural}"

  private def entry(status: FileStatus): Int = {
    val name = folder.relativize(status.getPath)
    // A table that is read by its path has no files outside its folder, so entries with fully
    // qualified paths are ignored.
    val known = folder.isInCatalog || !TableFolder.isWhole(name)
    val entry = if (known) snapshot.find(name) else -1
    if (entry >= 0 && valid(entry, status)) entry else -1
  }

  /** The size, in bytes, of the file with this entry. */
  def size(entry: Int): Long = snapshot.size(entry)

  /** The number of rows in the file with this entry. */
  def numRecords(entry: Int): Long = snapshot.numRecords(entry)

  /** Evaluates each file that has an entry and whose result is still null, and sets its result. */
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

  private def valid(entry: Int, status: FileStatus): Boolean =
    snapshot.size(entry) == status.getLen &&
      snapshot.modificationTime(entry) == status.getModificationTime && isReadAlike(entry)

  /** Whether the entry's statistics were collected with the settings of this scan. */
  private def isReadAlike(entry: Int): Boolean =
    snapshot.readSettings(entry).structural == settings.structural
}
