package io.pyzorder.skipping.files

import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.fs.Path

import io.pyzorder.skipping.predicate.{FileTest, IndexFilter}

/**
 * Remembers which entries of large snapshots the filters of one plan select. While Spark plans and
 * runs a query, the same filter is evaluated several times, to estimate the query's cost, to
 * describe the plan and to choose the files. Looking up a result is much faster than evaluating it.
 */
private[skipping] final class EvaluatedFilters {
  import EvaluatedFilters._

  private val known = new ConcurrentHashMap[Question, Answers]

  /** The same test, which evaluates each entry only once in the plan. */
  def once(question: => Question, numFiles: Int)(test: FileTest): FileTest =
    if (numFiles < Many) test
    else {
      val answers = known.computeIfAbsent(question, _ => new Answers(numFiles))
      new FileTest {
        override def mayMatch(file: Int): Boolean = test.mayMatch(file)
        override def select(files: Array[Int], places: Array[Int], count: Int): Int =
          answers.select(test, files, places, count)
      }
    }
}

private[skipping] object EvaluatedFilters {

  /** Below this number of files, evaluating a filter again takes no noticeable time. */
  private val Many = 10000

  /**
   * @param snapshot the snapshot's name, unique within the table
   * @param settings the session's settings, which a predicate might read when a ConstantFileFilter
   *                 evaluates it
   */
  final case class Question(
      folder: Path,
      snapshot: String,
      filter: IndexFilter,
      reading: ColumnReading,
      settings: Map[String, String])

  /** One bit for each entry that has been evaluated, and one for each that may match. */
  private final class Answers(numFiles: Int) {
    private val evaluated, matching = new java.util.BitSet(numFiles)

    def select(test: FileTest, files: Array[Int], places: Array[Int], count: Int): Int =
      synchronized {
        val open = new Array[Int](count)
        var opened = 0
        var i = 0
        while (i < count) {
          if (!evaluated.get(files(places(i)))) {
            open(opened) = places(i)
            opened += 1
          }
          i += 1
        }
        if (opened > 0) {
          val selected = test.select(files, open, opened)
          i = 0
          while (i < selected) {
            matching.set(files(open(i)))
            i += 1
          }
          i = 0
          while (i < count) { // only now, because the test may throw
            evaluated.set(files(places(i)))
            i += 1
          }
        }
        var kept = 0
        i = 0
        while (i < count) {
          val place = places(i)
          if (matching.get(files(place))) {
            places(kept) = place
            kept += 1
          }
          i += 1
        }
        kept
      }
  }
}
