package io.pyzorder.skipping.files

import java.util.Arrays

import scala.collection.mutable.{ArrayBuffer, ArrayBuilder}

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.execution.datasources.{
  FileIndex, FileStatusWithMetadata, PartitionDirectory
}

import io.pyzorder.skipping.predicate.FileOutcomes

/**
 * Evaluates one listed partition with the evaluators of one scan. If a file has valid entries in
 * several indexes, the entry in the first of these indexes is used.
 *
 * @param listing   the listing that returned the partition
 * @param judges    one evaluator for each index that may contain the partition's files
 * @param evaluated the results of the plan so far
 */
private[skipping] final class PartitionEvaluation(
    directory: PartitionDirectory,
    listing: FileIndex,
    judges: Array[FileEvaluator],
    evaluated: EvaluatedPartitions) {

  private val listed: IndexedSeq[FileStatusWithMetadata] = directory.files.toIndexedSeq

  /**
   * The positions of the entries, indexed by evaluator and file. The arrays belong to the cached
   * listing and must not be modified.
   */
  private val entries: Array[Array[Int]] = judges.map(_.entries(listing, listed))

  private var result: PartitionResult = evaluated.once(judges.map(_.question).zip(entries)) {
    val each = new Array[PruningResult](listed.length)
    judges.indices.foreach(number => judges(number).judge(entries(number), each))
    PartitionResult.of(each, skippedSize)
  }

  /** The statuses, as listed, of the files that are skipped. */
  def skipped: Iterator[FileStatus] = result.skipped.map(listed(_).fileStatus)

  /** The statuses, as listed, of the files with a valid entry. */
  def indexed: Iterator[FileStatus] =
    listed.indices.iterator.filter(numberOf(_) >= 0).map(listed(_).fileStatus)

  /** Marks files as unindexed if they have changed since they were listed. */
  def forget(changed: FileStatus => Boolean): Unit =
    result = result.unindexed(i => changed(listed(i).fileStatus), skippedSize)

  /**
   * Returns the partition without the skipped files. Adds every listed file, skipped or not, to
   * `counts`.
   *
   * @param withoutJoins    the same partition, evaluated without the join keys; None if no file
   *                        would be skipped
   * @param withoutSketches the same partition, evaluated without sketches
   */
  def pruned(
      counts: SkippingCounts,
      withoutJoins: Option[PartitionEvaluation],
      withoutSketches: PartitionEvaluation): PartitionDirectory = {
    val byJoins =
      withoutJoins.fold(result.numSkipped)(other => result.numSkippedUnlike(other.result))
    val bySketches =
      if (withoutSketches eq this) 0 else result.numSkippedUnlike(withoutSketches.result)
    counts.skip(result.numSkipped, result.skippedBytes, byJoins, bySketches)
    directory.copy(files = result.kept.indices.map { k =>
      val file = listed(result.kept(k))
      counts.open(file.fileStatus, result.results(k))
      file
    })
  }

  /** The files, each with its index entry and the outcomes for its rows. */
  def examined(outcomes: Array[FileOutcomes]): ExaminedPartition = {
    val now = result
    def file(i: Int, verdict: PruningResult): ExaminedFile =
      if (verdict == PruningResult.Unindexed) ExaminedFile(listed(i), verdict, None)
      else {
        val number = numberOf(i)
        val known = new KnownFile(judges(number), entries(number)(i), outcomes(number))
        ExaminedFile(listed(i), verdict, Some(known))
      }
    ExaminedPartition(
      directory.values,
      now.kept.indices.map(k => file(now.kept(k), now.results(k))),
      new SkippedFiles(
        now.numSkipped, now.skippedBytes,
        () => now.skipped.map(file(_, PruningResult.Skipped))))
  }

  /** The size of a skipped file. Its entry is much closer in memory than its status. */
  private def skippedSize(i: Int): Long = {
    val number = numberOf(i)
    judges(number).size(entries(number)(i))
  }

  /** The number of the evaluator whose index has an entry for file i, or -1 if there is none. */
  private def numberOf(i: Int): Int = {
    var number = 0
    while (number < entries.length && entries(number)(i) < 0) number += 1
    if (number < entries.length) number else -1
  }
}

/**
 * The results for the files of one partition. Most files of a large table are skipped, so only the
 * others are enumerated.
 *
 * @param numFiles     the number of files in the partition
 * @param kept         the positions of the files that are not skipped, in ascending order
 * @param results      the results for these files
 * @param skippedBytes the total size of the skipped files
 */
private[skipping] final class PartitionResult(
    numFiles: Int,
    val kept: Array[Int],
    val results: Array[PruningResult],
    val skippedBytes: Long) {

  def numSkipped: Int = numFiles - kept.length

  /** The positions of the skipped files. */
  def skipped: Iterator[Int] = {
    var next = 0
    Iterator.range(0, numFiles).filter { i =>
      val isKept = next < kept.length && kept(next) == i
      if (isKept) next += 1
      !isKept
    }
  }

  /** The number of files that are skipped here but not in `other`, a result for the same files. */
  def numSkippedUnlike(other: PartitionResult): Int =
    other.kept.count(Arrays.binarySearch(kept, _) < 0)

  /**
   * The same results, except that the files that `isUnindexed` selects are unindexed.
   *
   * @param size the size of a file at a position
   */
  def unindexed(isUnindexed: Int => Boolean, size: Int => Long): PartitionResult = {
    val each = Array.fill[PruningResult](numFiles)(PruningResult.Skipped)
    kept.indices.foreach(k => each(kept(k)) = results(k))
    each.indices.foreach(i => if (isUnindexed(i)) each(i) = PruningResult.Unindexed)
    PartitionResult.of(each, size)
  }
}

private[skipping] object PartitionResult {

  /**
   * @param each the result for each file; null if the file is unindexed
   * @param size the size of a file at a position
   */
  def of(each: Array[PruningResult], size: Int => Long): PartitionResult = {
    val kept = new ArrayBuilder.ofInt
    val results = ArrayBuffer.empty[PruningResult]
    var bytes = 0L
    var i = 0
    while (i < each.length) {
      if (each(i) == PruningResult.Skipped) bytes += size(i)
      else {
        kept += i
        results += (if (each(i) == null) PruningResult.Unindexed else each(i))
      }
      i += 1
    }
    new PartitionResult(each.length, kept.result(), results.toArray, bytes)
  }
}
