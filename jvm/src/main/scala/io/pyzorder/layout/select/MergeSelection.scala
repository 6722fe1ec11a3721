package io.pyzorder.layout.select

import io.pyzorder.layout.cells.{BoxSpace, RegionBox, Regions}

/**
 * What an OPTIMIZE of a partition takes that holds new files beside clustered ones.
 *
 * @param files   numbers of the clustered files to rewrite together with all new ones
 * @param regions where rows of different regions must not share a file
 */
final case class MergeSelection(files: Seq[Int], regions: Regions)

/**
 * Chooses which clustered files are worth being laid out again together with new files.
 *
 * The space is cut into regions between the clustered files. New rows are laid out within their
 * regions; of each region, the widest files first, as many clustered files join them as saves most
 * opened bytes for each byte rewritten, until all regions together have taken `factor` times the
 * bytes of the new files, or those of one file if that is more. So the work of all OPTIMIZE runs
 * stays proportional to what was appended, and without new files there is none.
 *
 * What a lookup opens, on average over the rows' values and the columns, is the sum over the files
 * of bytes × width; `BoxSpace.width` is the share of the values within the file's bounds. Each file
 * counts as a few bytes more than it has, so that small ones of one place are merged. A layout anew
 * is taken to fill the least box around its rows evenly, and to halve the widest column of that
 * until the pieces are files, or, as a plain sort does, the first column that can be cut.
 */
object MergeSelection {

  /** No more regions than this: each makes a file of its own of the new rows in it. */
  private val MaxRegions = 16

  /** To open a file costs as much as to read this share of one of the target size. */
  private val OpenShare = 1.0 / 32

  /** Clustered files that would be opened less by a smaller share than this are left alone. */
  private val LeastGain = 0.05

  /** New rows of a region should fill this share of a file, or regions are made larger. */
  private val LeastFill = 0.25

  /**
   * @param fresh      numbers of the new files, at least one
   * @param clustered  numbers of the clustered files, at least one
   * @param targetSize bytes of a file
   * @param factor     see above
   * @param lexical    see KdTree.build
   */
  def choose(
      space: BoxSpace,
      fresh: Seq[Int],
      clustered: Seq[Int],
      targetSize: Long,
      factor: Double,
      lexical: Boolean): MergeSelection = {
    val newBytes = bytesOf(space, fresh)
    val oldBytes = bytesOf(space, clustered)
    val regions =
      math.max(1.0, math.min(MaxRegions.toDouble, newBytes / (LeastFill * targetSize)))
    val (tree, boxes) = Regions.between(
      space, clustered, math.max(2 * targetSize, (oldBytes / regions).toLong))
    val offers = boxes.zipWithIndex.flatMap { case (region, number) =>
      offersOf(space, number, region, arrivals(space, region, fresh), targetSize, lexical)
    }
    val budget = if (factor == 0) 0L else math.max((factor * newBytes).toLong, targetSize)
    val taken = accept(offers, budget)
    MergeSelection(taken.flatMap(_.files), tree)
  }

  /**
   * How many times the bytes are opened that would be if the files were laid out anew: 1 is best.
   */
  def excess(
      space: BoxSpace,
      files: Seq[Int],
      targetSize: Long,
      lexical: Boolean): Double = {
    val best = opened(space, files.map(fileRows(space, _)).reduce(_ + _), targetSize, lexical)
    if (best <= 0) 1.0 else math.max(1.0, files.map(opened(space, _, targetSize)).sum / best)
  }

  /** @param gain opened bytes saved by rewriting `files`, the widest ones of the region */
  private final case class Offer(region: Int, files: Seq[Int], bytes: Long, gain: Double)

  private def offersOf(
      space: BoxSpace,
      number: Int,
      region: RegionBox,
      arriving: Option[Rows],
      targetSize: Long,
      lexical: Boolean): Seq[Offer] = {
    def anew(rows: Rows): Double = opened(space, rows, targetSize, lexical)
    val widest = region.files.toVector.sortBy(file => -space.columns.map(space.width(_, file)).sum)
    val alone = arriving.map(anew).getOrElse(0.0)
    var staying, bytes = 0.0
    var together = arriving
    widest.indices.flatMap { i =>
      val file = widest(i)
      val rows = fileRows(space, file)
      together = Some(together.fold(rows)(_ + rows))
      bytes += rows.bytes
      staying += opened(space, file, targetSize)
      val gain = alone + staying - anew(together.get)
      if (gain > LeastGain * staying) Some(Offer(number, widest.take(i + 1), bytes.toLong, gain))
      else None
    }
  }

  /** The offers with the best gain a byte, of each region at most one, within the budget. */
  private def accept(offers: Seq[Offer], budget: Long): Seq[Offer] = {
    var left = budget
    var taken = Map.empty[Int, Offer]
    offers.sortBy(offer => -offer.gain / offer.bytes).foreach { offer =>
      val more = offer.bytes - taken.get(offer.region).map(_.bytes).getOrElse(0L)
      if (more > 0 && more <= left) {
        left -= more
        taken += offer.region -> offer
      }
    }
    taken.toSeq.sortBy(_._1).map(_._2)
  }

  private def opened(space: BoxSpace, file: Int, targetSize: Long): Double =
    (space.files(file).bytes + OpenShare * targetSize) *
      space.columns.map(space.width(_, file)).sum

  /** So many bytes of rows, and of each column the ranks they lie within. */
  private final case class Rows(bytes: Double, low: Seq[Int], high: Seq[Int]) {

    def +(other: Rows): Rows = Rows(
      bytes + other.bytes,
      low.zip(other.low).map { case (a, b) => math.min(a, b) },
      high.zip(other.high).map { case (a, b) => math.max(a, b) })
  }

  private def fileRows(space: BoxSpace, file: Int): Rows = Rows(
    space.files(file).bytes.toDouble,
    space.columns.map(space.low(_, file)),
    space.columns.map(space.high(_, file)))

  /** The rows of the new files that lie in a region, if they fill their boxes evenly. */
  private def arrivals(space: BoxSpace, region: RegionBox, fresh: Seq[Int]): Option[Rows] =
    fresh.flatMap { file =>
      val low = space.columns.map(c => math.max(region.low(c), space.low(c, file)))
      val high = space.columns.map(c => math.min(region.high(c), space.high(c, file)))
      val share = space.columns.map { c =>
        val width = space.width(c, file)
        if (width > 0) space.share(c, low(c), high(c)) / width
        else if (low(c) <= high(c)) 1.0
        else 0.0
      }.product
      if (share > 0) Some(Rows(space.files(file).bytes * share, low, high)) else None
    }.reduceOption(_ + _)

  /** What rows cost once they are laid out. */
  private def opened(
      space: BoxSpace,
      rows: Rows,
      targetSize: Long,
      lexical: Boolean): Double = {
    val written = RewritePlan.filesOf(rows.bytes.toLong, targetSize)
    (rows.bytes + OpenShare * targetSize * written) * sides(space, rows, written, lexical).sum
  }

  /** How wide the new files are foreseen to be in each column if these are laid out again. */
  def widths(space: BoxSpace, files: Seq[Int], written: Int, lexical: Boolean): Seq[Double] =
    sides(space, files.map(fileRows(space, _)).reduce(_ + _), written, lexical)

  private def sides(
      space: BoxSpace,
      rows: Rows,
      written: Int,
      lexical: Boolean): Seq[Double] = {
    val sides = space.columns.map(c => space.share(c, rows.low(c), rows.high(c))).toArray
    val grains = space.columns.map(c => space.grain(c, rows.low(c), rows.high(c))).toArray
    var files = written.toDouble
    while (files > 1) {
      val free = sides.indices.filter(c => sides(c) / 2 >= grains(c))
      if (free.isEmpty) files = 1
      else {
        sides(if (lexical) free.head else free.maxBy(sides(_))) /= math.min(files, 2.0)
        files /= 2
      }
    }
    sides.toSeq
  }

  private def bytesOf(space: BoxSpace, files: Seq[Int]): Long =
    files.iterator.map(space.files(_).bytes).sum
}
