package io.pyzorder.workload

import java.util.concurrent.ThreadLocalRandom

/**
 * How often scans with one shape were executed.
 *
 * @param days     the number of scans on each day. Days are numbered from the epoch, in UTC
 * @param last     when the last of the scans ended, in milliseconds since the epoch
 * @param examples a random sample of the scans' conditions, with constants; see Shape.of
 */
private[pyzorder] final case class ShapeCount(
    days: Map[Long, Long],
    last: Long,
    examples: Seq[Seq[String]]) {

  /** The number of scans on all days. */
  def queries: Long = days.values.sum

  def +(other: ShapeCount): ShapeCount = {
    val sums = other.days.foldLeft(days) { case (sums, (day, scans)) =>
      sums.updated(day, sums.getOrElse(day, 0L) + scans)
    }
    val both = (examples ++ other.examples).distinct
    val kept = ShapeCount.sample(both, other.examples, sums.values.sum)
    ShapeCount(sums, last.max(other.last), kept)
  }
}

private[pyzorder] object ShapeCount {

  val MaxExamples = 32

  /**
   * At most MaxExamples of the examples. Each of `added` replaces a random one with a probability
   * that falls with the number of scans, so early and late scans are equally likely to be kept.
   */
  private def sample(
      all: Seq[Seq[String]],
      added: Seq[Seq[String]],
      queries: Long): Seq[Seq[String]] =
    if (all.length <= MaxExamples) all
    else {
      val random = ThreadLocalRandom.current()
      added.filter(_ => random.nextLong(queries) < MaxExamples)
        .foldLeft(all.take(MaxExamples)) { (kept, example) =>
          if (kept.contains(example)) kept
          else kept.updated(random.nextInt(MaxExamples), example)
        }
    }
}

/** The recorded scans of a table by shape. Keeps the shapes that were seen most recently. */
private[pyzorder] final case class WorkloadCounts(shapes: Map[Shape, ShapeCount]) {

  def isEmpty: Boolean = shapes.isEmpty

  /** The days on which scans were recorded, the earliest first. */
  def days: Seq[Long] = shapes.values.flatMap(_.days.keys).toSeq.distinct.sorted

  /** The scans on the last `count` of the days on which scans were recorded. */
  def ofLast(count: Int): WorkloadCounts = ofDays(days.takeRight(count).toSet)

  /** The scans on the days for which `isKept` is true. */
  def ofDays(isKept: Long => Boolean): WorkloadCounts =
    WorkloadCounts(shapes.map { case (shape, count) =>
        shape -> count.copy(days = count.days.filter { case (day, _) => isKept(day) })
      }.filter { case (_, count) => count.days.nonEmpty })

  def ++(other: WorkloadCounts): WorkloadCounts = {
    val all = WorkloadCounts(other.shapes.foldLeft(shapes) { case (sums, (shape, count)) =>
      sums.updated(shape, sums.get(shape).fold(count)(_ + count))
    }).ofLast(WorkloadCounts.MaxDays)
    if (all.shapes.size <= WorkloadCounts.MaxShapes) all
    else
      WorkloadCounts(all.shapes.toSeq.sortBy(-_._2.last).take(WorkloadCounts.MaxShapes).toMap)
  }
}

private[pyzorder] object WorkloadCounts {

  val MaxShapes = 200

  /** The number of days that are kept, not counting days on which nothing was recorded. */
  val MaxDays = 30

  val none: WorkloadCounts = WorkloadCounts(Map.empty)

  /** The day of a time in milliseconds since the epoch. */
  def dayOf(time: Long): Long = Math.floorDiv(time, 86400000L)

  /** One scan that ended at the time `now`. */
  def one(shape: Shape, example: Seq[String], now: Long): WorkloadCounts =
    WorkloadCounts(
      Map(shape -> ShapeCount(
        Map(dayOf(now) -> 1L), now, Seq(example).filter(_.exists(_.nonEmpty)))))
}
