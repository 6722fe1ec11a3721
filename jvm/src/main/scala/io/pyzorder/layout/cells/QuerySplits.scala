package io.pyzorder.layout.cells

import java.util.Arrays

/**
 * Cuts the cells of a KdTree where queries cut them, as in a qd-tree (Yang et al., SIGMOD 2020).
 *
 * @param rows    the rows of the cells
 * @param queries see `KdTree.build`
 */
private[cells] final class QuerySplits(rows: SampleRows, queries: CellQueries) {
  import QuerySplits._

  private var cutCells = 0

  /**
   * Chooses the cut after which the queries read the fewest rows, among cuts that yield files of
   * about equal size. None if no cut serves enough queries.
   */
  def split(from: Int, to: Int, leaves: Int): Option[Split] =
    if (cutCells == MostCells) None
    else {
      cutCells += 1
      best(from, to, leaves)
    }

  private def best(from: Int, to: Int, leaves: Int): Option[Split] = {
    val sides = rows.varying(from, to).flatMap { c =>
      val splits = splitsOf(c, from, to, leaves).filter(_.unevenness <= Tolerated).sortBy(_.cut)
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
  private def splitsOf(c: Int, from: Int, to: Int, leaves: Int): IndexedSeq[Split] = {
    val sorted = rows.sortedIds(c, from, to)
    val wanted = (1 until Cuts).map(i => (leaves * i + Cuts / 2) / Cuts)
      .filter(n => n > 0 && n < leaves).distinct
    val edges = queries.edges(c).filter(sorted.isCutBy)
    val some = edges.indices.by(math.max(1, (edges.length + MostEdges - 1) / MostEdges)).map(edges)
    (wanted.map(sorted.cutNearest(_, leaves, leftSlabs = 0)) ++
      some.map(sorted.cutBefore(_, leaves))).distinct
  }

  /**
   * Both sides of each cut of a column. For large cells, they are computed from rows taken at
   * regular intervals.
   *
   * @param cuts the first ids of the right sides, in ascending order
   */
  private def sidesOf(c: Int, from: Int, to: Int, cuts: IndexedSeq[Int]): IndexedSeq[Sides] = {
    val step = math.max(1, (to - from) / MostRows)
    val sorted = rows.sorted(c, from, to, step)
    val ends = cuts.map(cut => firstWithId(sorted, cut))
    val left = new GrowingBounds(rows.ids)
    val lefts = (0 +: ends).zip(ends).map { case (start, end) =>
      (start until end).foreach(i => left.add(sorted(i).toInt))
      left.now
    }
    val right = new GrowingBounds(rows.ids)
    val rights = ends.zip(ends.drop(1) :+ sorted.length).reverse.map { case (start, end) =>
      (start until end).foreach(i => right.add(sorted(i).toInt))
      right.now
    }.reverse
    cuts.indices.map(i => Sides(lefts(i), rights(i), ends(i).toDouble / sorted.length))
  }

  /** The position of the first of the sampled rows whose id is at least `id`. */
  private def firstWithId(sorted: Array[Long], id: Int): Int = {
    val at = Arrays.binarySearch(sorted, id.toLong << 32)
    if (at < 0) -at - 1 else at
  }
}

private object QuerySplits {

  /**
   * A cut may yield files that exceed an even share of the rows by this fraction. It is large
   * because cuts at the edges of queries are possible only at certain values.
   */
  private val Tolerated = 0.5

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
}
