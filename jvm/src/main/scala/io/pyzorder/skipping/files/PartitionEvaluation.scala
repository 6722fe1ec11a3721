package io.pyzorder.skipping.files

import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.execution.datasources.{
  FileIndex, FileStatusWithMetadata, PartitionDirectory
}

import io.pyzorder.skipping.predicate.FileOutcomes

/**
 * Evaluates one listed partition with the evaluators of one scan. If a file has valid entries in
 * several indexes, the entry in the first of these indexes is used.
 *
 * @param listing the listing that returned the partition
 * @param judges  one evaluator for each index that may contain the partition's files
 */
private[skipping] final class PartitionEvaluation(
    val directory: PartitionDirectory,
    listing: FileIndex,
    judges: Array[FileEvaluator]) {

  private val listed: IndexedSeq[FileStatusWithMetadata] = directory.files.toIndexedSeq

  /**
   * The positions of the entries, indexed by evaluator and file. The arrays belong to the cached
   * listing and must not be modified.
   */
  private val entries: Array[Array[Int]] = judges.map(_.entries(listing, listed))

  /** The result for each file. */
  private val verdicts: Array[PruningResult] = {
    val each = new Array[PruningResult](listed.length)
    judges.indices.foreach(number => judges(number).judge(entries(number), each))
    var i = 0
    while (i < each.length) {
      if (each(i) == null) each(i) = PruningResult.Unindexed
      i += 1
    }
    each
  }

  /** The statuses, as listed, of the files whose results satisfy `matters`. */
  def filesOf(matters: PruningResult => Boolean): Seq[FileStatus] = {
    val found = ArrayBuffer.empty[FileStatus]
    var i = 0
    while (i < listed.length) {
      if (matters(verdicts(i))) found += listed(i).fileStatus
      i += 1
    }
    found.toSeq
  }

  /** Marks files as unindexed if they have changed since they were listed. */
  def forget(changed: FileStatus => Boolean): Unit = {
    var i = 0
    while (i < listed.length) {
      if (verdicts(i) != PruningResult.Unindexed && changed(listed(i).fileStatus)) {
        verdicts(i) = PruningResult.Unindexed
      }
      i += 1
    }
  }

  /**
   * Returns the partition without the skipped files. Adds every listed file, skipped or not, to
   * `counts`.
   *
   * @param withoutJoins evaluators that ignore the join keys; empty if they would not skip any
   *                     files
   */
  def pruned(counts: SkippingCounts, withoutJoins: Array[FileEvaluator]): PartitionDirectory = {
    val kept = ArrayBuffer.empty[FileStatusWithMetadata]
    var i = 0
    while (i < listed.length) {
      if (verdicts(i) == PruningResult.Skipped) {
        val byJoins =
          withoutJoins.isEmpty || {
            val number = judgeOf(i)
            !withoutJoins(number).skips(entries(number)(i))
          }
        counts.skip(skippedSize(i), byJoins)
      } else {
        counts.open(listed(i).fileStatus, verdicts(i))
        kept += listed(i)
      }
      i += 1
    }
    directory.copy(files = kept.toIndexedSeq)
  }

  /** The files, each with its index entry and the outcomes for its rows. */
  def examined(outcomes: Array[FileOutcomes]): ExaminedPartition = {
    def file(i: Int): ExaminedFile =
      if (verdicts(i) == PruningResult.Unindexed) ExaminedFile(listed(i), verdicts(i), None)
      else {
        val number = judgeOf(i)
        val known = new KnownFile(judges(number), entries(number)(i), outcomes(number))
        ExaminedFile(listed(i), verdicts(i), Some(known))
      }
    val kept = ArrayBuffer.empty[ExaminedFile]
    var bytes = 0L
    var i = 0
    while (i < listed.length) {
      if (verdicts(i) == PruningResult.Skipped) bytes += skippedSize(i) else kept += file(i)
      i += 1
    }
    def skipped = listed.indices.iterator.filter(verdicts(_) == PruningResult.Skipped).map(file)
    ExaminedPartition(
      directory.values, kept.toIndexedSeq,
      new SkippedFiles(listed.length - kept.length, bytes, () => skipped))
  }

  /** The size of a skipped file. Its entry is much closer in memory than its status. */
  private def skippedSize(i: Int): Long = {
    val number = judgeOf(i)
    judges(number).size(entries(number)(i))
  }

  private def judgeOf(i: Int): Int = {
    var number = 0
    while (number < entries.length && entries(number)(i) < 0) number += 1
    if (number < entries.length) number else -1
  }
}
