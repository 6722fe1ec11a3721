package io.pyzorder.layout

/**
 * What an OPTIMIZE of a partition takes that holds new files beside clustered ones.
 *
 * @param files   numbers of the clustered files to rewrite together with all new ones
 * @param regions where rows of different regions must not share a file
 */
final case class Merge(files: Seq[Int], regions: Regions)

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
 * is taken to halve the widest column of its box until the pieces are files, or, as a plain sort
 * does, the first column that can be cut.
 */
object Merge {

  /** No more regions than this: each makes a file of its own of the new rows in it. */
  private val MaxRegions = 16

  /** To open a file costs as much as to read this share of one of the target size. */
  private val OpenShare = 1.0 / 32

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
      lexical: Boolean): Merge = {
    val newBytes = bytesOf(space, fresh)
    val oldBytes = bytesOf(space, clustered)
    val regions =
      math.max(1.0, math.min(MaxRegions.toDouble, newBytes / (LeastFill * targetSize)))
    val (tree, boxes) = Regions.between(
      space, clustered, math.max(2 * targetSize, (oldBytes / regions).toLong))
    val offers = boxes.zipWithIndex.flatMap { case (box, number) =>
      offersOf(space, number, box, newBytesIn(space, box, fresh), targetSize, lexical)
    }
    val budget = if (factor == 0) 0L else math.max((factor * newBytes).toLong, targetSize)
    val taken = accept(offers, budget)
    Merge(taken.flatMap(_.files), tree)
  }

  /**
   * How many times the bytes are opened that would be if the files were laid out anew: 1 is best.
   */
  def excess(
      space: BoxSpace,
      files: Seq[Int],
      targetSize: Long,
      lexical: Boolean): Double = {
    val whole = new Room(
      space, RegionBox(files, space.columns.map(_ => 0), space.columns.map(space.lastRank)),
      lexical)
    val best = whole.opened(bytesOf(space, files).toDouble, targetSize)
    if (best <= 0) 1.0 else math.max(1.0, files.map(opened(space, _, targetSize)).sum / best)
  }

  /** @param gain opened bytes saved by rewriting `files`, the widest ones of the region */
  private final case class Offer(region: Int, files: Seq[Int], bytes: Long, gain: Double)

  private def offersOf(
      space: BoxSpace,
      number: Int,
      box: RegionBox,
      newBytes: Double,
      targetSize: Long,
      lexical: Boolean): Seq[Offer] = {
    val room = new Room(space, box, lexical)
    val widest = box.files.toVector.sortBy(file => -space.columns.map(space.width(_, file)).sum)
    var bytes = 0L
    var before = room.opened(newBytes, targetSize)
    widest.indices.flatMap { i =>
      bytes += space.files(widest(i)).bytes
      before += opened(space, widest(i), targetSize)
      val gain = before - room.opened(newBytes + bytes, targetSize)
      if (gain > 0) Some(Offer(number, widest.take(i + 1), bytes, gain)) else None
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

  /** A box that rows are spread over evenly. */
  private final class Room(space: BoxSpace, box: RegionBox, lexical: Boolean) {
    private val widths = space.columns.map(c => space.share(c, box.low(c), box.high(c))).toArray
    private val grains = space.columns.map(c => space.grain(c, box.low(c), box.high(c))).toArray

    /** What so many bytes in it cost once they are laid out. */
    def opened(bytes: Double, targetSize: Long): Double = {
      val sides = widths.clone()
      val opening = if (bytes > 0) OpenShare * math.max(bytes, targetSize.toDouble) else 0.0
      var files = bytes / targetSize
      while (files > 1) {
        val free = sides.indices.filter(c => sides(c) / 2 >= grains(c))
        if (free.isEmpty) files = 1
        else {
          sides(if (lexical) free.head else free.maxBy(sides(_))) /= math.min(files, 2.0)
          files /= 2
        }
      }
      (bytes + opening) * sides.sum
    }
  }

  /** How many bytes of the new files lie in a region, if they fill their boxes evenly. */
  private def newBytesIn(space: BoxSpace, box: RegionBox, fresh: Seq[Int]): Double =
    fresh.map { file =>
      space.files(file).bytes * space.columns.map { c =>
        val width = space.width(c, file)
        val low = math.max(box.low(c), space.low(c, file))
        val high = math.min(box.high(c), space.high(c, file))
        if (width > 0) space.share(c, low, high) / width else if (low <= high) 1.0 else 0.0
      }.product
    }.sum

  private def bytesOf(space: BoxSpace, files: Seq[Int]): Long =
    files.iterator.map(space.files(_).bytes).sum
}
