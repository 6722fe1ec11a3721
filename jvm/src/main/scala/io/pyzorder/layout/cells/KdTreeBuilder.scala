package io.pyzorder.layout.cells

import scala.collection.mutable.ArrayBuffer

/**
 * Grows a KdTree from a sample, top down. A node's leaves are divided between two sides, and the
 * node is cut at the point that divides the sampled rows in the same proportion. If equal ids
 * prevent that cut, the nearest possible cut decides how many leaves each side gets. Each builder
 * grows only one tree.
 *
 * @param ids     range ids, indexed first by column, then by sampled row
 * @param lexical see `KdTree.build`
 * @param inGrid  whether to cut each column into as many slabs as `Grid` returns; if false, columns
 *                are cut into halves
 * @param queries see `KdTree.build`
 */
private[layout] final class KdTreeBuilder(
    ids: Array[Array[Int]],
    lexical: Boolean,
    inGrid: Boolean,
    queries: Option[CellQueries] = None) {
  import KdTreeBuilder._

  private val rows = new SampleRows(ids)
  private val byQueries = queries.map(new QuerySplits(rows, _))
  private val column, cut, right = ArrayBuffer.empty[Int]
  private var widths = 0.0

  /**
   * The sum of the files' spreads in all columns. The amount of data that lookups read is
   * proportional to this sum.
   */
  def width: Double = widths

  /**
   * @param leaves  total number of leaves; each region gets a share in proportion to its rows, but
   *                at least one leaf
   * @param regions the regions, each of which gets its own subtree
   * @param idAt    see `KdTree.build`
   */
  def build(leaves: Int, regions: Regions, idAt: (Int, Any) => Int): KdTree = {
    val grown = growRegions(0, rows.length, 0, leaves, regions, idAt)
    new KdTree(column.toArray, cut.toArray, right.toArray, grown)
  }

  /** Grows the subtree of each region and returns the total number of leaves. */
  private def growRegions(
      from: Int,
      to: Int,
      firstLeaf: Int,
      leaves: Int,
      regions: Regions,
      idAt: (Int, Any) => Int): Int = regions match {
    case Region =>
      val own =
        if (to - from == rows.length) leaves
        else math.max(1L, math.round((to - from).toDouble / rows.length * leaves)).toInt
      grow(from, to, firstLeaf, own, slabs(from, to, own))
      own
    case Cut(c, value, left, rest) =>
      val at = idAt(c, value)
      val node = add(c, at, 0)
      val middle = rows.partition(from, to, c, at)
      val inLeft = growRegions(from, middle, firstLeaf, leaves, left, idAt)
      right(node) = column.length
      inLeft + growRegions(middle, to, firstLeaf + inLeft, leaves, rest, idAt)
  }

  /**
   * The number of slabs that `Grid` chooses for each column of a region; Nil if no grid is used.
   */
  private def slabs(from: Int, to: Int, leaves: Int): Seq[Int] =
    if (inGrid) Grid.slabs(leaves, ids.indices.map(rows.spread(_, from, to))) else Nil

  /**
   * Adds the subtree for `rows(from until to)`. Its files are numbered starting at `firstLeaf`.
   *
   * @param slabs the number of slabs into which each column still has to be cut; if it is Nil, or 1
   *              for all columns, columns are cut into halves
   */
  private def grow(from: Int, to: Int, firstLeaf: Int, leaves: Int, slabs: Seq[Int]): Unit =
    splitCell(from, to, leaves, slabs) match {
      case None =>
        ids.indices.foreach(c => widths += leaves * rows.spread(c, from, to))
        add(-1, firstLeaf, leaves)
      case Some(split) =>
        val node = add(split.column, split.cut, 0)
        val middle = rows.partition(from, to, split.column, split.cut)
        grow(from, middle, firstLeaf, split.leftLeaves, split.left(slabs))
        right(node) = column.length
        grow(middle, to, firstLeaf + split.leftLeaves, leaves - split.leftLeaves,
          split.right(slabs))
    }

  /** Returns the cut of a cell; None if its rows are distributed evenly over its files. */
  private def splitCell(from: Int, to: Int, leaves: Int, slabs: Seq[Int]): Option[Split] =
    if (leaves == 1) None
    else byQueries.flatMap(_.split(from, to, leaves)).orElse(chooseSplit(from, to, leaves, slabs))

  private def add(nodeColumn: Int, nodeCut: Int, nodeRight: Int): Int = {
    column += nodeColumn; cut += nodeCut; right += nodeRight
    column.length - 1
  }

  /**
   * Chooses the widest column whose cut yields files of about equal size. If there is no such
   * column, chooses the column that can be cut most evenly. If `lexical`, chooses the first column
   * that has more than one id. Returns None if all rows have the same ids.
   */
  private def chooseSplit(from: Int, to: Int, leaves: Int, slabs: Seq[Int]): Option[Split] = {
    val all = ids.indices.map(c => c -> rows.spread(c, from, to)).filter(_._2 > 0)
    val even = all.filter { case (c, _) => queries.forall(_.evenly.contains(c)) }
    val wide = if (even.isEmpty) all else even
    val inSlabs = wide.filter { case (c, _) => slabsOf(c, leaves, slabs) > 1 }
    val able = if (inSlabs.isEmpty) wide else inSlabs
    val ordered = if (lexical || able.isEmpty) able else widestFirst(able)
    val splits = ordered.iterator.map { case (c, _) =>
      splitOf(c, from, to, leaves, math.max(2, slabsOf(c, leaves, slabs)))
    }
    var best: Option[Split] = None
    while (splits.hasNext && best.forall(_.unevenness > Tolerated)) {
      val next = splits.next()
      if (best.forall(_.unevenness > next.unevenness)) best = Some(next)
      if (lexical) return best
    }
    best
  }

  private def widestFirst(wide: Seq[(Int, Double)]): Seq[(Int, Double)] = {
    val (equal, narrower) = wide.partition(_._2 >= AboutAsWide * wide.map(_._2).max)
    equal ++ narrower.sortBy { case (c, width) => (-width, c) }
  }

  /** The number of slabs into which a column still has to be cut; 1 if no grid is used. */
  private def slabsOf(c: Int, leaves: Int, slabs: Seq[Int]): Int =
    if (slabs.isEmpty) 1
    else if (slabs(c) != Grid.Rest) slabs(c)
    else math.round(leaves.toDouble / slabs.filter(_ != Grid.Rest).product).toInt

  /**
   * Returns the possible cut of a column that is nearest to the middle of the column's slabs. The
   * column must have at least two ids.
   */
  private def splitOf(c: Int, from: Int, to: Int, leaves: Int, slabs: Int): Split = {
    val wanted = math.max(1, math.round(leaves.toDouble * (slabs / 2) / slabs).toInt)
    rows.sortedIds(c, from, to).cutNearest(wanted, leaves, slabs / 2)
  }
}

private[layout] object KdTreeBuilder {

  /**
   * The next column is tried if a cut yields files that exceed an even share of the rows by more
   * than this fraction.
   */
  private val Tolerated = 0.25

  /**
   * Columns whose spread is at least this share of the widest column's spread are treated as
   * equally wide, because a sample is no more accurate than that. Such columns are tried in column
   * order.
   */
  private val AboutAsWide = 0.9
}
