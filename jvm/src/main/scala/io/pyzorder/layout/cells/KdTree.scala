package io.pyzorder.layout.cells

/**
 * Cuts the space of the clustering columns' range ids into cells. The cells yield exactly
 * `leafCount` files with about the same number of rows each. Files are numbered from left to right
 * in the tree.
 *
 * A node consists of three numbers: the column it splits, the first id of its right side, and its
 * right child. The left child immediately follows the node. In a leaf, the three numbers are -1,
 * the first file and the number of files. A leaf has several files if a single combination of ids
 * has too many rows for one file. The leaf's rows are then distributed evenly over these files.
 */
final class KdTree private[layout] (
    column: Array[Int],
    cut: Array[Int],
    right: Array[Int],
    val leafCount: Int)
    extends Serializable {

  /** The columns that are cut. */
  def cutColumns: Seq[Int] = column.filter(_ >= 0).distinct.toSeq

  /**
   * The number of a row's file, between 0 and `leafCount - 1`.
   *
   * @param ids  the row's range id in each column
   * @param turn a non-negative number that varies from row to row. If a cell has several files,
   *             `turn` distributes the cell's rows over them
   */
  def leaf(ids: Array[Int], turn: Int): Int = {
    var node = 0
    while (column(node) >= 0) {
      node = if (ids(column(node)) < cut(node)) node + 1 else right(node)
    }
    cut(node) + (if (right(node) == 1) 0 else turn % right(node))
  }

  /**
   * The file of each row. The ids are given column by column, and each row's position serves as its
   * `turn`.
   */
  def leaves(columns: Array[Array[Int]]): Array[Int] = {
    val ids = new Array[Int](columns.length)
    Array.tabulate(columns.head.length) { row =>
      var c = 0
      while (c < ids.length) { ids(c) = columns(c)(row); c += 1 }
      leaf(ids, row)
    }
  }
}

object KdTree {

  /** A tree with a single leaf for all ids. */
  val single: KdTree = new KdTree(Array(-1), Array(0), Array(1), 1)

  /**
   * Builds the tree from a sample of the rows.
   *
   * @param columns  range ids, indexed first by column, then by sampled row; id 0 stands for null
   * @param leaves   number of files, at least 1
   * @param lexical  whether to split the first column for as long as possible and then the second,
   *                 which gives the same files as a plain sort. Otherwise, the column with the
   *                 largest remaining spread is split. Columns are cut into the slabs of a grid.
   *                 Because frequent values can make a grid uneven, columns are cut into halves
   *                 instead if lookups then open significantly fewer files.
   * @param queries  if defined, each cell is first cut where the queries then read the fewest rows,
   *                 as in a qd-tree (Yang et al., SIGMOD 2020). Where no cut serves enough of them,
   *                 one of their even columns is cut in the middle
   */
  def build(
      columns: Array[Array[Int]],
      leaves: Int,
      lexical: Boolean,
      queries: Option[CellQueries] = None): KdTree =
    build(columns, leaves, lexical, Region, (_, _) => 0, queries)

  /**
   * Builds a tree that also separates regions. Each region has at least one leaf, so if there are
   * several regions, the number of leaves may differ from `leaves`.
   *
   * @param idAt returns, for a column and a value, the first range id on the right side of a cut at
   *             this value
   */
  def build(
      columns: Array[Array[Int]],
      leaves: Int,
      lexical: Boolean,
      regions: Regions,
      idAt: (Int, Any) => Int,
      queries: Option[CellQueries]): KdTree = {
    require(leaves >= 1, s"a k-d tree has at least one leaf, not $leaves")
    if (columns.isEmpty || (leaves == 1 && regions == Region)) heavy(leaves)
    else {
      val isEven = lexical || columns.length == 1 || queries.isDefined
      val ways = if (isEven) Seq(false) else Seq(true, false)
      val grown = ways.map { inGrid =>
        val builder = new KdTreeBuilder(columns, lexical, inGrid, queries)
        builder.build(leaves, regions, idAt) -> builder.width
      }
      val least = grown.map(_._2).min
      grown.find(_._2 <= least * Grid.Tolerated).get._1
    }
  }

  /** A single cell whose rows are distributed over all files. */
  private def heavy(leaves: Int): KdTree = new KdTree(Array(-1), Array(0), Array(leaves), leaves)
}
