package io.pyzorder.skipping.files

import java.util.concurrent.ConcurrentHashMap

import scala.util.hashing.MurmurHash3

import org.apache.hadoop.fs.Path

import io.pyzorder.skipping.predicate.IndexFilter

/**
 * Remembers the results of one plan's filters. While Spark plans and runs a query, the same filter
 * is evaluated several times, to estimate the query's cost, to describe the plan and to choose the
 * files.
 */
private[skipping] final class EvaluatedPartitions {
  import EvaluatedPartitions._

  private val known = new ConcurrentHashMap[Seq[(Question, Array[Int])], PartitionResult]

  /**
   * The result for one partition.
   *
   * @param asked what each evaluator evaluates, and the positions of the files' entries. The arrays
   *              of positions are compared by identity (see MatchedListing, which returns the same
   *              array for the same files)
   */
  def once(asked: Seq[(Question, Array[Int])])(evaluate: => PartitionResult): PartitionResult =
    if (!asked.exists(_._1.numFiles >= Many)) evaluate
    else
      Option(known.get(asked)).getOrElse {
        val result = evaluate
        known.put(asked, result)
        result
      }
}

private[skipping] object EvaluatedPartitions {

  /** Below this number of files, evaluating a filter again takes no noticeable time. */
  private val Many = 10000

  /**
   * What determines the results of an evaluator.
   *
   * @param snapshot the snapshot's name, unique within the table
   * @param numFiles the number of entries in the snapshot
   * @param settings the session's settings, which a predicate might read when a ConstantFileFilter
   *                 evaluates it
   */
  final case class Question(
      folder: Path,
      snapshot: String,
      numFiles: Int,
      filter: IndexFilter,
      reading: ColumnReading,
      settings: Map[String, String]) {
    override lazy val hashCode: Int = MurmurHash3.productHash(this)
  }
}
