package io.pyzorder.skipping.files

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata

import io.pyzorder.skipping.predicate.{FileOutcomes, FileTest, FilterColumn, IndexFilter, Outcomes}

/**
 * A listed file, together with the index's current information about it.
 *
 * @param known the index's information about the file; None if the index has no valid entry for it
 */
final case class ExaminedFile(
    file: FileStatusWithMetadata,
    verdict: PruningResult,
    known: Option[KnownFile])

private[files] object ExaminedFile {

  /** The files in which some row may match the filter. A file without a valid entry is kept. */
  def matching(files: IndexedSeq[ExaminedFile], filter: IndexFilter): IndexedSeq[ExaminedFile] = {
    val tests = mutable.Map.empty[FileEvaluator, FileTest]
    val kept = files.filter(_.known.forall { file =>
      tests.getOrElseUpdate(file.judge, filter.bind(file.judge.facts)).mayMatch(file.entry)
    })
    if (kept.size == files.size) files else kept
  }
}

/**
 * The files of one partition and the values of the partition columns. The files must be evaluated
 * eagerly, because Spark 3.5 may return the partitions as a lazy sequence. With lazy evaluation,
 * only the first partition's files would be evaluated before the results are added up.
 *
 * @param files   the files that are not skipped
 * @param skipped the skipped files. There may be very many, so each is looked up only if it is used
 */
final case class ExaminedPartition(
    values: InternalRow,
    files: IndexedSeq[ExaminedFile],
    skipped: SkippedFiles) {

  /** The same partition, but without the index entries of its files. */
  def unknown: ExaminedPartition = {
    val every = files ++ skipped.examined
    ExaminedPartition(
      values, every.map(f => ExaminedFile(f.file, PruningResult.Unindexed, None)),
      SkippedFiles.none)
  }
}

/**
 * @param number the number of files
 * @param bytes  their total size
 */
final class SkippedFiles(val number: Int, val bytes: Long, look: () => Iterator[ExaminedFile]) {
  def examined: Iterator[ExaminedFile] = look()
}

object SkippedFiles {
  val none: SkippedFiles = new SkippedFiles(0, 0, () => Iterator.empty)
}

/**
 * A file with a valid index entry. The file's size and modification time in the listing equal those
 * in the entry. If the store was checked after the listing, the file was unchanged at the time of
 * the check.
 */
final class KnownFile(
    private[files] val judge: FileEvaluator,
    val entry: Int,
    judged: FileOutcomes) {

  /** The outcomes that the conjunction of the filters can have for the file's rows. */
  def outcomes: Int = if (numRecords == 0) Outcomes.Nothing else judged.of(entry)

  /** Whether all of the file's rows are proved to pass the filters. */
  def allRows: Boolean = judged.allTrue(entry)

  def numRecords: Long = judge.numRecords(entry)

  /** The statistics of a column, to be read at `entry`; None if they cannot be used. */
  def facts(column: FilterColumn): Option[IndexedStatistics] = judge.facts(column)
}
