package io.pyzorder.workload

import java.util.concurrent.ThreadLocalRandom

/**
 * How often scans with one shape were executed.
 *
 * @param queries  the number of scans
 * @param last     when the last of them ended, in milliseconds since the epoch
 * @param examples a random sample of the scans' filters, with constants
 */
private[pyzorder] final case class ShapeCount(
    queries: Long,
    last: Long,
    examples: Seq[Seq[String]]) {

  def +(other: ShapeCount): ShapeCount = {
    val total = queries + other.queries
    val both = (examples ++ other.examples).distinct
    ShapeCount(total, last.max(other.last), ShapeCount.sample(both, other.examples, total))
  }
}

private[pyzorder] object ShapeCount {

  val MaxExamples = 8

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

  def ++(other: WorkloadCounts): WorkloadCounts = {
    val all = other.shapes.foldLeft(shapes) { case (sums, (shape, count)) =>
      sums.updated(shape, sums.get(shape).fold(count)(_ + count))
    }
    if (all.size <= WorkloadCounts.MaxShapes) WorkloadCounts(all)
    else WorkloadCounts(all.toSeq.sortBy(-_._2.last).take(WorkloadCounts.MaxShapes).toMap)
  }
}

private[pyzorder] object WorkloadCounts {

  val MaxShapes = 200

  val none: WorkloadCounts = WorkloadCounts(Map.empty)

  def one(shape: Shape, example: Seq[String], now: Long): WorkloadCounts =
    WorkloadCounts(Map(shape -> ShapeCount(1, now, Seq(example).filter(_.nonEmpty))))
}
