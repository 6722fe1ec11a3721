package io.pyzorder.layout.select

import io.pyzorder.layout.cells.{BoxSpace, RegionBox, Regions}

/**
 * The clustered files that an OPTIMIZE rewrites in a partition with both new and clustered files.
 *
 * @param files   positions of the clustered files to rewrite together with all new files
 * @param regions the regions; rows from different regions must not share a file
 */
final case class MergeSelection(files: Seq[Int], regions: Regions)

/**
 * Chooses which clustered files are worth rewriting together with new files.
 *
 * The space is cut into regions. The cuts run between the clustered files, and new rows are laid
 * out within their regions. A region's clustered files may be rewritten with its new rows, the
 * widest files first. All regions share one budget. It is spent first on the files whose rewrite
 * saves lookups the most bytes per rewritten byte. The budget is `factor` times the bytes of the
 * new files, but at least the target size of a file unless `factor` is 0. The total work of all
 * OPTIMIZE runs is therefore proportional to the appended data, and a run without new files has
 * nothing to do.
 *
 * The total size of the files that a lookup opens is averaged over the rows' values and summed over
 * the columns. The result is the sum of bytes × width over the files and the columns, where
 * `BoxSpace.width` is the share of the values within a file's bounds. Each file counts as slightly
 * larger than it is, which favors merging small files that lie close together. A new layout is
 * assumed to fill the smallest box around its rows evenly. The box is halved in its widest column
 * until there are as many pieces as files. If rows are sorted by one column after another, the box
 * is instead halved in the first column that can be cut.
 */
object MergeSelection {

  /** The maximum number of regions. Each region with new rows gets at least one new file. */
  private val MaxRegions = 16

  /** Opening a file costs as much as reading this share of a target-sized file. */
  private val OpenShare = 1.0 / 32

  /**
   * A rewrite of clustered files must save at least this share of the bytes that lookups read from
   * those files.
   */
  private val LeastGain = 0.05

  /** Regions are made large enough for their new rows to fill about this share of a file. */
  private val LeastFill = 0.25

  /**
   * @param fresh      positions of the new files in `space`; there is at least one
   * @param clustered  positions of the clustered files in `space`; there is at least one
   * @param targetSize the target size of a new file in bytes
   * @param factor     the amount of clustered data that may be rewritten, as a multiple of the new
   *                   files' size
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
   * The average total size of the files that a lookup opens, as a multiple of what it would be if
   * all of the files were rewritten; 1 is best.
   */
  def excess(
      space: BoxSpace,
      files: Seq[Int],
      targetSize: Long,
      lexical: Boolean): Double = {
    val best = opened(space, files.map(fileRows(space, _)).reduce(_ + _), targetSize, lexical)
    if (best <= 0) 1.0 else math.max(1.0, files.map(opened(space, _, targetSize)).sum / best)
  }

  /**
   * @param files the widest files of the region
   * @param gain  how many fewer bytes a lookup reads if `files` are rewritten, summed over the
   *              columns
   */
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

  /**
   * The offers with the best gain per byte that fit into the budget, at most one for each region.
   */
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

  /**
   * The total size of a set of rows, and the lowest and highest rank of each column in these rows.
   */
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

  /**
   * The new files' rows that lie in a region, assuming that each file's rows fill its box evenly.
   */
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

  /**
   * How many bytes a lookup reads from the new files that contain these rows, summed over the
   * columns.
   */
  private def opened(
      space: BoxSpace,
      rows: Rows,
      targetSize: Long,
      lexical: Boolean): Double = {
    val written = RewritePlan.filesOf(rows.bytes.toLong, targetSize)
    (rows.bytes + OpenShare * targetSize * written) * sides(space, rows, written, lexical).sum
  }

  /**
   * The expected width of the new files in each column if `files` are rewritten as `written` new
   * files.
   */
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
