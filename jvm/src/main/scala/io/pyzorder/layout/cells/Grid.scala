package io.pyzorder.layout.cells

/**
 * Into how many slabs each column is cut, so that the cells form a grid.
 *
 * A lookup of one column opens one slab's share of the files, whatever the others are cut into: in
 * a grid of k slabs of each column of spread s, lookups open the mean of all s/k, which is least
 * where cells are as long in every column. Few numbers of files are products of so many equal
 * factors: where cells have to be longer in some columns, they are so in the last one.
 */
private[layout] object Grid {

  /** The slabs of the last column that is cut: as many as there are files for. */
  val Rest = 0

  /** Lookups may open this many times the least share, for narrower first columns. */
  val Tolerated = 1.05

  /** What a sample says of spreads is not more exact. */
  private val About = 0.02

  /**
   * @param leaves  number of files
   * @param spreads of the columns, 0 of those that cannot be cut
   * @return the slabs of each column: 1 of one that is not cut, `Rest` of the last that is
   */
  def slabs(leaves: Int, spreads: Seq[Double]): Seq[Int] = {
    val ideal = even(leaves, spreads)
    val cut = spreads.indices.filter(ideal(_) > 1)
    if (cut.isEmpty) spreads.map(_ => 1)
    else {
      def lengths(slabs: Seq[Double]): Seq[Double] =
        cut.indices.map(i => spreads(cut(i)) / slabs(i))
      val candidates = near(leaves, cut.map(ideal))
      val least = candidates.map(lengths(_).sum).min
      val tolerated = candidates.filter(lengths(_).sum <= least * Tolerated)
      val inOrder =
        tolerated.filter(slabs => lengths(slabs).max <= lengths(slabs).last * (1 + About))
      val best = (if (inOrder.nonEmpty) inOrder else tolerated)
        .minBy(lengths(_).zip(cut).map { case (length, c) => length / (c + 1) }.sum)
      spreads.indices.map { c =>
        if (c == cut.last) Rest else if (cut.contains(c)) best(cut.indexOf(c)).toInt else 1
      }
    }
  }

  /** As many slabs of each column as make the cells as long in all of them; 1 of short columns. */
  private def even(leaves: Int, spreads: Seq[Double]): Seq[Double] = {
    var long = spreads.indices.filter(spreads(_) > 0)
    var length = 0.0
    do {
      long = long.filter(spreads(_) > length)
      length = math.pow(long.map(spreads).product / leaves, 1.0 / long.length)
    } while (long.exists(spreads(_) <= length))
    spreads.indices.map(c => if (long.contains(c)) spreads(c) / length else 1.0)
  }

  /** Whole numbers near those of all columns but the last, which takes what is left. */
  private def near(leaves: Int, ideal: Seq[Double]): Seq[Seq[Double]] = {
    val first = ideal.init
    val found = for {
      more <- 0 to first.length
      most <- 0 to more
      counts = first.zipWithIndex.map { case (count, i) =>
        if (math.abs(count - math.rint(count)) <= About * count) math.rint(count)
        else math.floor(count) + (if (i < most) 2 else if (i < more) 1 else 0)
      }
      last = leaves / counts.product
      if last >= 1
    } yield counts :+ last
    if (found.nonEmpty) found // not where whole numbers are more than the files; these never are
    else {
      val down = first.map(math.floor)
      Seq(down :+ leaves / down.product)
    }
  }
}
