package io.pyzorder.layout.cells

/**
 * Chooses how many slabs each column is cut into. The cells then form a grid.
 *
 * A lookup on one column opens one slab's share of the files, regardless of how the other columns
 * are cut. For a column of spread s that is cut into k slabs, this share is s/k. The spread is the
 * share of all rows that lie between the column's lowest and highest values in the space that is
 * cut. The mean share over all columns is smallest if cells are equally long in every column. For
 * most numbers of files, this would require fractional numbers of slabs. Cells are therefore longer
 * in one column, preferably the last.
 */
private[layout] object Grid {

  /** Marks the last column that is cut, which gets as many slabs as the number of files allows. */
  val Rest = 0

  /**
   * The largest share of the files that lookups may open, as a multiple of the smallest possible
   * share. More than the smallest share is accepted if cells are then narrower in the first
   * columns.
   */
  val Tolerated = 1.05

  /** The relative error of the spreads, which are estimated from a sample. */
  private val About = 0.02

  /**
   * @param leaves  number of files
   * @param spreads the spread of each column; 0 if the column cannot be cut
   * @return the number of slabs of each column: 1 if the column is not cut, `Rest` for the last
   *         column that is cut
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

  /**
   * The fractional numbers of slabs that make cells equally long in all columns. A column whose
   * whole spread is shorter than a cell gets 1 slab.
   */
  private def even(leaves: Int, spreads: Seq[Double]): Seq[Double] = {
    var long = spreads.indices.filter(spreads(_) > 0)
    var length = 0.0
    do {
      long = long.filter(spreads(_) > length)
      length = math.pow(long.map(spreads).product / leaves, 1.0 / long.length)
    } while (long.exists(spreads(_) <= length))
    spreads.indices.map(c => if (long.contains(c)) spreads(c) / length else 1.0)
  }

  /**
   * Candidate numbers of slabs. For all columns but the last, they are whole numbers near the ideal
   * ones. The number for the last column follows from the others.
   */
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
    if (found.nonEmpty) found
    else {
      // In every candidate, the product of the numbers of slabs in the first columns exceeds
      // `leaves`. Rounding all of these numbers down avoids this.
      val down = first.map(math.floor)
      Seq(down :+ leaves / down.product)
    }
  }
}
