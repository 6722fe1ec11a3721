package io.pyzorder.skipping.files

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata

import io.pyzorder.skipping.predicate.{FileOutcomes, FilterColumn, Outcomes}

/**
 * One listed file, and what the index says of it at this moment.
 *
 * @param known None: the index does not know the file as it is now
 */
final case class ExaminedFile(
    file: FileStatusWithMetadata,
    verdict: PruningResult,
    known: Option[KnownFile])

/**
 * The files of one partition, with the values of the partition columns. All are looked at at once:
 * a lazy sequence, which Spark 3.5 may list partitions in, would tell of the first alone when the
 * answers are added up.
 */
final case class ExaminedPartition(values: InternalRow, files: IndexedSeq[ExaminedFile]) {

  /** The same, but nothing is known of the files. */
  def unknown: ExaminedPartition =
    copy(files = files.map(f => ExaminedFile(f.file, PruningResult.Unindexed, None)))
}

/**
 * A file whose entry in the index is valid: as it is now (if the store was asked; else as it was
 * listed), it is what it was when the entry was made.
 */
final class KnownFile(judge: FileEvaluator, val entry: Int, judged: FileOutcomes) {

  /** The outcomes that the filters' conjunction can have for its rows. */
  def outcomes: Int = if (numRecords == 0) Outcomes.Nothing else judged.of(entry)

  /** Proved: all of its rows pass the filters. */
  def allRows: Boolean = judged.allTrue(entry)

  def numRecords: Long = judge.numRecords(entry)

  /** The statistics of a column, asked for by `entry`; None: there are none to use. */
  def facts(column: FilterColumn): Option[IndexedStatistics] = judge.facts(column)
}
