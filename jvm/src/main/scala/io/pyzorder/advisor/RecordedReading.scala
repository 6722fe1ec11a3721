package io.pyzorder.advisor

import scala.util.hashing.MurmurHash3

import io.pyzorder.workload.WorkloadCounts

/**
 * One example of a scan in a recorded workload.
 *
 * @param joinKeys the columns that are join keys
 * @param filters  predicates that a row must pass
 * @param keys     predicates on join keys that a row must pass; empty for unknown keys
 * @param weight   the number of queries that it stands for
 * @param chooses  whether it takes part in the choice of a layout
 * @param judges   whether it takes part in judging the choice
 */
private[advisor] final case class RecordedReading(
    joinKeys: Seq[String],
    filters: Seq[String],
    keys: Seq[String],
    weight: Long,
    chooses: Boolean,
    judges: Boolean) {

  def conditions: Seq[String] = filters ++ keys.filter(_.nonEmpty)
}

private[advisor] object RecordedReading {

  /** The maximum weight. A forged count could be any number. */
  private val MostQueries = 1000000000L

  /**
   * The maximum number of characters in different conditions. The conditions of the most frequent
   * shapes are used. A forged workload could contain conditions that take minutes to analyze.
   */
  private val MostText = 100000

  /** The readings in the workload, those of the most frequent shapes first. */
  def of(recorded: WorkloadCounts): Seq[RecordedReading] = {
    val readings = all(recorded)
    val kept = readings.iterator.flatMap(_.conditions).toSeq.distinct
      .scanLeft("" -> 0) { case ((_, sum), text) => text -> (sum + text.length) }
      .takeWhile(_._2 <= MostText).map(_._1).toSet
    readings.map(reading =>
      reading.copy(
        filters = reading.filters.filter(kept), keys = reading.keys.filter(kept)))
  }

  private def all(recorded: WorkloadCounts): Seq[RecordedReading] =
    recorded.shapes.toSeq.sortBy { case (shape, count) => (-count.queries, shape.toString) }
      .flatMap { case (shape, count) =>
        val examples = if (count.examples.isEmpty) Seq(Nil) else shuffled(count.examples)
        examples.zipWithIndex.map { case (parts, i) =>
          val (filters, keys) = parts.splitAt(shape.filters.length)
          val share = count.queries / examples.length +
            (if (i < count.queries % examples.length) 1 else 0)
          val isOnly = examples.length == 1
          RecordedReading(
            shape.joinKeys, filters, keys, share.min(MostQueries),
            chooses = isOnly || i % 2 == 0, judges = isOnly || i % 2 == 1)
        }
      }

  /**
   * The examples in an order that depends only on their text. If applications alternate between two
   * kinds of queries, one kind must not choose a layout that the other kind judges.
   */
  private def shuffled(examples: Seq[Seq[String]]): Seq[Seq[String]] =
    examples.sortBy(parts => (MurmurHash3.orderedHash(parts), parts.mkString(" ")))
}
