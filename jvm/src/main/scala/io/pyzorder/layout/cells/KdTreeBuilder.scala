package io.pyzorder.layout.cells

import java.util.Arrays

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

  private val numRows = ids.head.length
  private val rows = Array.range(0, numRows)
  private val scratch = new Array[Int](numRows)
  private val places = ids.map(placesOf)
  private val column, cut, right = ArrayBuffer.empty[Int]
  private var widths = 0.0
  private var cutCells = 0

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
    val grown = growRegions(0, numRows, 0, leaves, regions, idAt)
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
        if (to - from == numRows) leaves
        else math.max(1L, math.round((to - from).toDouble / numRows * leaves)).toInt
      grow(from, to, firstLeaf, own, slabs(from, to, own))
      own
    case Cut(c, value, left, rest) =>
      val at = idAt(c, value)
      val node = add(c, at, 0)
      val middle = partition(from, to, c, at)
      val inLeft = growRegions(from, middle, firstLeaf, leaves, left, idAt)
      right(node) = column.length
      inLeft + growRegions(middle, to, firstLeaf + inLeft, leaves, rest, idAt)
  }

  /**
   * The number of slabs that `Grid` chooses for each column of a region; Nil if no grid is used.
   */
  private def slabs(from: Int, to: Int, leaves: Int): Seq[Int] =
    if (inGrid) Grid.slabs(leaves, ids.indices.map(spread(_, from, to))) else Nil

  /**
   * Adds the subtree for `rows(from until to)`. Its files are numbered starting at `firstLeaf`.
   *
   * @param slabs the number of slabs into which each column still has to be cut; if it is Nil, or 1
   *              for all columns, columns are cut into halves
   */
  private def grow(from: Int, to: Int, firstLeaf: Int, leaves: Int, slabs: Seq[Int]): Unit =
    (if (leaves == 1) None
     else splitByQueries(from, to, leaves).orElse(chooseSplit(from, to, leaves, slabs))) match {
      case None =>
        ids.indices.foreach(c => widths += leaves * spread(c, from, to))
        add(-1, firstLeaf, leaves)
      case Some(split) =>
        val node = add(split.column, split.cut, 0)
        val middle = partition(from, to, split.column, split.cut)
        grow(from, middle, firstLeaf, split.leftLeaves, split.left(slabs))
        right(node) = column.length
        grow(middle, to, firstLeaf + split.leftLeaves, leaves - split.leftLeaves,
          split.right(slabs))
    }

  /**
   * Chooses the cut after which the queries read the fewest rows, among cuts that yield files of
   * about equal size. None if no cut serves enough queries.
   */
  private def splitByQueries(from: Int, to: Int, leaves: Int): Option[Split] =
    queries.filter(_ => cutCells < MostCells).flatMap { asked =>
      cutCells += 1
      splitByQueries(from, to, leaves, asked)
    }

  private def splitByQueries(
      from: Int,
      to: Int,
      leaves: Int,
      queries: CellQueries): Option[Split] = {
    val sides = ids.indices.filter(spread(_, from, to) > 0).flatMap { c =>
      val splits = splitsOf(c, from, to, leaves, queries)
        .filter(_.unevenness <= ToleratedByQueries).sortBy(_.cut)
      splits.zip(sidesOf(c, from, to, splits.map(_.cut)))
    }.filter { case (_, side) => side.share > 0 && side.share < 1 }.toIndexedSeq
    if (sides.isEmpty) None
    else {
      val readers = queries(sides.flatMap { case (_, side) => Seq(side.left, side.right) })
        .filter(_.reads.contains(true))
      // For each cut, the share of the cell's rows that the queries read, summed over the queries.
      val costs = sides.indices.map { i =>
        val share = sides(i)._2.share
        readers.map(query =>
          query.count * ((if (query.reads(2 * i)) share else 0) +
            (if (query.reads(2 * i + 1)) 1 - share else 0))).sum
      }
      def evidence(i: Int): Int =
        readers.filter(query => !query.reads(2 * i) || !query.reads(2 * i + 1)).map(_.evidence).sum
      sides.indices.filter(evidence(_) >= LeastEvidence)
        .sortBy(i => (costs(i), sides(i)._1.unevenness)).headOption.map(sides(_)._1)
    }
  }

  /** Cuts of a column that divide the rows about evenly, and cuts at the edges of queries. */
  private def splitsOf(
      c: Int,
      from: Int,
      to: Int,
      leaves: Int,
      queries: CellQueries): IndexedSeq[Split] = {
    sort(c, from, to)
    val count = to - from
    val wanted = (1 until Cuts).map(i => (leaves * i + Cuts / 2) / Cuts)
      .filter(n => n > 0 && n < leaves).distinct
    val edges = queries.edges(c).filter(id => scratch(0) < id && id <= scratch(count - 1))
    val some = edges.indices.by(math.max(1, (edges.length + MostEdges - 1) / MostEdges)).map(edges)
    (wanted.map(n => cutAt(c, count, leaves, n, leftSlabs = 0)) ++
      some.map(id => split(c, firstFrom(id, count), count, leaves, leftSlabs = 0))).distinct
  }

  /**
   * Both sides of each cut of a column. For large cells, they are computed from rows taken at
   * regular intervals.
   *
   * @param cuts the first ids of the right sides, in ascending order
   */
  private def sidesOf(c: Int, from: Int, to: Int, cuts: IndexedSeq[Int]): IndexedSeq[Sides] = {
    val step = math.max(1, (to - from) / MostRows)
    val sorted = sampled(c, from, to, step)
    val ends = cuts.map(cut => firstWithId(sorted, cut))
    val left = new GrowingBounds(ids)
    val lefts = (0 +: ends).zip(ends).map { case (start, end) =>
      (start until end).foreach(i => left.add(sorted(i).toInt))
      left.now
    }
    val right = new GrowingBounds(ids)
    val rights = ends.zip(ends.drop(1) :+ sorted.length).reverse.map { case (start, end) =>
      (start until end).foreach(i => right.add(sorted(i).toInt))
      right.now
    }.reverse
    cuts.indices.map(i => Sides(lefts(i), rights(i), ends(i).toDouble / sorted.length))
  }

  /** Every `step`-th row in ascending order of a column: its id in the high half, then the row. */
  private def sampled(c: Int, from: Int, to: Int, step: Int): Array[Long] = {
    val found = Array.range(from, to, step).map(i => ids(c)(rows(i)).toLong << 32 | rows(i))
    Arrays.sort(found)
    found
  }

  /** The position of the first of the sampled rows whose id is at least `id`. */
  private def firstWithId(sorted: Array[Long], id: Int): Int = {
    val at = Arrays.binarySearch(sorted, id.toLong << 32)
    if (at < 0) -at - 1 else at
  }

  private def add(nodeColumn: Int, nodeCut: Int, nodeRight: Int): Int = {
    column += nodeColumn; cut += nodeCut; right += nodeRight
    column.length - 1
  }

  /**
   * Chooses the widest column whose cut yields files of about equal size. If there is no such
   * column, chooses the column that can be cut most evenly. If `lexical`, chooses the first column
   * that has more than one id. Returns None if all rows have the same ids. In this case, the rows
   * are distributed evenly over the cell's files.
   */
  private def chooseSplit(from: Int, to: Int, leaves: Int, slabs: Seq[Int]): Option[Split] = {
    val all = ids.indices.map(c => c -> spread(c, from, to)).filter(_._2 > 0)
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
    sort(c, from, to)
    val wanted = math.max(1, math.round(leaves.toDouble * (slabs / 2) / slabs).toInt)
    cutAt(c, to - from, leaves, wanted, slabs / 2)
  }

  /** Puts the ids of a column in `rows(from until to)` into `scratch`, in ascending order. */
  private def sort(c: Int, from: Int, to: Int): Unit = {
    var i = from
    while (i < to) { scratch(i - from) = ids(c)(rows(i)); i += 1 }
    Arrays.sort(scratch, 0, to - from)
  }

  /**
   * Returns the possible cut of a column that is nearest to `wanted` of the files. The first
   * `count` elements of `scratch` must contain the column's ids in order.
   */
  private def cutAt(c: Int, count: Int, leaves: Int, wanted: Int, leftSlabs: Int): Split = {
    val aim = (count.toLong * wanted / leaves).toInt
    var before, after = aim
    while (before > 0 && scratch(before - 1) == scratch(aim)) before -= 1
    while (after < count && scratch(after) == scratch(aim)) after += 1
    val at = if (before == 0 || (after < count && after - aim < aim - before)) after else before
    split(c, at, count, leaves, leftSlabs)
  }

  /** The position in the sorted `scratch` of the first of `count` ids that is at least `id`. */
  private def firstFrom(id: Int, count: Int): Int = {
    var at = Arrays.binarySearch(scratch, 0, count, id)
    if (at < 0) -at - 1
    else {
      while (at > 0 && scratch(at - 1) == id) at -= 1
      at
    }
  }

  /** Returns the cut of a column before position `at` of the sorted `scratch`. */
  private def split(c: Int, at: Int, count: Int, leaves: Int, leftSlabs: Int): Split = {
    val share = at.toDouble / count
    val leftLeaves = math.min(leaves - 1, math.max(1, math.round(share * leaves).toInt))
    val fullest = math.max(share / leftLeaves, (1 - share) / (leaves - leftLeaves)) * leaves
    Split(c, scratch(at), leftSlabs, leftLeaves, fullest - 1)
  }

  /**
   * Moves the rows left of the cut to the front and returns where the rows right of the cut begin.
   */
  private def partition(from: Int, to: Int, byColumn: Int, at: Int): Int = {
    var low = from
    var high = to - 1
    while (low <= high) {
      if (ids(byColumn)(rows(low)) < at) low += 1
      else { val row = rows(low); rows(low) = rows(high); rows(high) = row; high -= 1 }
    }
    low
  }

  /** The distance between the positions of a cell's lowest and highest ids (see `placesOf`). */
  private def spread(c: Int, from: Int, to: Int): Double = {
    var least = Int.MaxValue
    var greatest = -1
    var i = from
    while (i < to) {
      val id = ids(c)(rows(i))
      if (id < least) least = id
      if (id > greatest) greatest = id
      i += 1
    }
    if (greatest <= least) 0 else places(c)(greatest) - places(c)(least)
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

  /** The same for cuts by queries, which are often possible only at certain values. */
  private val ToleratedByQueries = 0.5

  /** Each column is tried at up to this number of cuts, less one, that divide the rows evenly. */
  private val Cuts = 16

  /**
   * A cut by queries must let at least this number of different queries skip one of its sides. The
   * recorded queries are examples, and cuts around a few of them would not serve the others.
   */
  private val LeastEvidence = 3

  /** The maximum number of edges of queries at which each column is tried. */
  private val MostEdges = 48

  /** The approximate maximum number of rows from which the bounds of a cell are computed. */
  private val MostRows = 5000

  /** The maximum number of cells that are cut by queries, which bounds the time that it takes. */
  private val MostCells = 1000

  /**
   * Both sides of a cut.
   *
   * @param share the share of the rows that are on the left side
   */
  private final case class Sides(left: CellBounds, right: CellBounds, share: Double)

  /** The bounds of rows that are added one by one. */
  private final class GrowingBounds(ids: Array[Array[Int]]) {
    private val least, greatest = new Array[Int](ids.length)
    private val hasNull = new Array[Boolean](ids.length)

    def add(row: Int): Unit = {
      var c = 0
      while (c < ids.length) {
        val id = ids(c)(row)
        if (id == 0) hasNull(c) = true
        else {
          if (least(c) == 0 || id < least(c)) least(c) = id
          if (id > greatest(c)) greatest(c) = id
        }
        c += 1
      }
    }

    def now: CellBounds = CellBounds(least.clone(), greatest.clone(), hasNull.clone())
  }

  /**
   * @param cut        the first id of the right side
   * @param leftSlabs  number of the column's slabs on the left side
   * @param unevenness the fraction by which the files on the fuller side exceed an even share; 0 if
   *                   the cut is even
   */
  private final case class Split(
      column: Int,
      cut: Int,
      leftSlabs: Int,
      leftLeaves: Int,
      unevenness: Double) {

    /** The number of slabs into which each column of the left side still has to be cut. */
    def left(slabs: Seq[Int]): Seq[Int] = taking(slabs, _ => leftSlabs)

    /** The number of slabs into which each column of the right side still has to be cut. */
    def right(slabs: Seq[Int]): Seq[Int] = taking(slabs, _ - leftSlabs)

    private def taking(slabs: Seq[Int], left: Int => Int): Seq[Int] =
      if (slabs.isEmpty || slabs(column) <= 1) slabs else slabs.updated(column, left(slabs(column)))
  }

  /**
   * The position of each id among all rows: the share of rows with a lower id, plus half the share
   * of rows with this id.
   */
  private def placesOf(column: Array[Int]): Array[Double] = {
    var greatest = 0
    column.foreach(id => if (id > greatest) greatest = id)
    val counts = new Array[Int](greatest + 1)
    column.foreach(id => counts(id) += 1)
    var below = 0L
    counts.map { count =>
      val place = (below + count / 2.0) / column.length
      below += count
      place
    }
  }
}
