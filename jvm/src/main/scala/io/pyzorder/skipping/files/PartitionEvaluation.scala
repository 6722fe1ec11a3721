package io.pyzorder.skipping.files

import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.execution.datasources.{
  FileIndex, FileStatusWithMetadata, PartitionDirectory
}

import io.pyzorder.skipping.predicate.FileOutcomes

/**
 * One listed partition put to the judges of one scan. A file below two indexed folders: the first
 * one's valid entry counts.
 *
 * @param listing which gave the partition
 * @param judges  one for each index that the partition's files can be in
 */
private[skipping] final class PartitionEvaluation(
    val directory: PartitionDirectory,
    listing: FileIndex,
    judges: Array[FileEvaluator]) {

  private val listed: Array[FileStatusWithMetadata] = directory.files.toArray

  /** By the number of the judge and that of the file; not ours to change: the listing keeps it. */
  private val entries: Array[Array[Int]] = judges.map(_.entries(listing, listed))

  /** By the number of the file. */
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

  /** The files with such a verdict, as listed. */
  def filesOf(matters: PruningResult => Boolean): Seq[FileStatus] = {
    val found = ArrayBuffer.empty[FileStatus]
    var i = 0
    while (i < listed.length) {
      if (matters(verdicts(i))) found += listed(i).fileStatus
      i += 1
    }
    found.toSeq
  }

  /** Takes back what the index says of the files that are not any more as listed. */
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
   * The partition without the files to be skipped; what becomes of each is counted.
   *
   * @param withoutJoins what judges that do not know the keys of joins say; empty: nothing
   */
  def pruned(counts: SkippingCounts, withoutJoins: Array[FileEvaluator]): PartitionDirectory = {
    val kept = ArrayBuffer.empty[FileStatusWithMetadata]
    var i = 0
    while (i < listed.length) {
      if (verdicts(i) == PruningResult.Skipped) {
        val number = judgeOf(i)
        val entry = entries(number)(i)
        val byJoins = withoutJoins.isEmpty || !withoutJoins(number).skips(entry)
        counts.skip(judges(number).size(entry), byJoins)
      } else {
        counts.open(listed(i).fileStatus, verdicts(i))
        kept += listed(i)
      }
      i += 1
    }
    directory.copy(files = kept.toIndexedSeq)
  }

  /** Every file with what the index says of it, and of its rows' outcomes by each judge. */
  def examined(outcomes: Array[FileOutcomes]): ExaminedPartition =
    ExaminedPartition(
      directory.values,
      listed.indices.map { i =>
        if (verdicts(i) == PruningResult.Unindexed)
          ExaminedFile(listed(i), PruningResult.Unindexed, None)
        else {
          val number = judgeOf(i)
          val known = new KnownFile(judges(number), entries(number)(i), outcomes(number))
          ExaminedFile(listed(i), verdicts(i), Some(known))
        }
      })

  private def judgeOf(i: Int): Int = {
    var number = 0
    while (number < entries.length && entries(number)(i) < 0) number += 1
    if (number < entries.length) number else -1
  }
}
