package io.pyzorder.layout.cells

/**
 * Divides the space of the clustering columns into regions. The cuts run through the gaps between
 * files that are already clustered, so new files need not overlap the files that are kept. The
 * regions are the leaves of a tree and are numbered from left to right.
 */
sealed abstract class Regions {

  /** The values at which a column is cut. */
  def cutsOf(column: Int): Seq[Any]
}

/** A leaf: a region that is not cut. */
case object Region extends Regions {
  override def cutsOf(column: Int): Seq[Any] = Nil
}

/**
 * An inner node, which cuts one column at a value.
 *
 * @param column position of the clustering column
 * @param value  the value in Catalyst's internal representation. Null and smaller values go left
 */
final case class Cut(column: Int, value: Any, left: Regions, right: Regions) extends Regions {
  override def cutsOf(column: Int): Seq[Any] =
    (if (column == this.column) Seq(value) else Nil) ++ left.cutsOf(column) ++ right.cutsOf(column)
}

/**
 * A region and the clustered files in it.
 *
 * @param files positions of the files in the BoxSpace
 * @param low   lowest rank in each column
 * @param high  highest rank in each column
 */
final case class RegionBox(files: Seq[Int], low: Seq[Int], high: Seq[Int])

object Regions {

  /** The minimum share of the bytes on either side of a cut. */
  private val LeastSide = 0.1

  /**
   * Cuts between files until each region contains at most `limit` bytes or cannot be cut further.
   *
   * @return the tree, and its regions from left to right
   */
  def between(space: BoxSpace, files: Seq[Int], limit: Long): (Regions, Seq[RegionBox]) =
    grow(space, limit,
      RegionBox(files, space.columns.map(_ => 0), space.columns.map(space.lastRank)))

  private def grow(space: BoxSpace, limit: Long, box: RegionBox): (Regions, Seq[RegionBox]) = {
    val bytes = box.files.iterator.map(space.files(_).bytes).sum
    val gaps =
      if (bytes <= limit) Nil
      else space.columns.flatMap(c => balancedGap(space, c, box.files, bytes))
    if (gaps.isEmpty) (Region, Seq(box))
    else {
      val gap = gaps.maxBy(_.balance)
      val (left, right) = box.files.partition(space.high(gap.column, _) < gap.rank)
      val (leftTree, leftBoxes) =
        grow(space, limit, box.copy(left, high = box.high.updated(gap.column, gap.rank - 1)))
      val (rightTree, rightBoxes) =
        grow(space, limit, box.copy(right, low = box.low.updated(gap.column, gap.rank)))
      (Cut(gap.column, gap.value, leftTree, rightTree), leftBoxes ++ rightBoxes)
    }
  }

  /** @param balance the share of the bytes on the lighter side */
  private final case class Gap(column: Int, rank: Int, value: Any, balance: Double)

  /**
   * The best-balanced gap in a column. The files are ordered by the rank at which they begin. There
   * is a gap before a file if all earlier files end before this file begins.
   */
  private def balancedGap(
      space: BoxSpace,
      column: Int,
      files: Seq[Int],
      bytes: Long): Option[Gap] = {
    val ordered = files.sortBy(space.low(column, _)).toArray
    var best: Option[Gap] = None
    var reached = -1
    var before = 0L
    ordered.indices.dropRight(1).foreach { i =>
      reached = math.max(reached, space.high(column, ordered(i)))
      before += space.files(ordered(i)).bytes
      val next = ordered(i + 1)
      val rank = space.low(column, next)
      val balance = math.min(before, bytes - before).toDouble / bytes
      if (reached < rank && balance >= LeastSide && best.forall(_.balance < balance)) {
        space.files(next).columns(column).bounds.foreach { case (least, _) =>
          best = Some(Gap(column, rank, least, balance))
        }
      }
    }
    best
  }
}
