package io.pyzorder.layout.cells

/**
 * Cuts the space of the clustering columns' range ids into exactly `leafCount` cells of about the
 * same number of rows, numbered in z-order. Each cell becomes one file.
 *
 * A node is three numbers: the column it splits, the first id of its right side, and its right
 * child (the left one follows the node). A leaf holds column -1, its first file and its number of
 * files: more than one where a single combination of ids is heavier than a file, whose rows are
 * then dealt out by count.
 */
final class KdTree private[layout] (
    column: Array[Int],
    cut: Array[Int],
    right: Array[Int],
    val leafCount: Int)
    extends Serializable {

  /**
   * The leaf of a row, 0 until `leafCount`.
   *
   * @param ids  the row's range id of every column
   * @param turn any non-negative number that differs from row to row: deals a heavy cell out
   */
  def leaf(ids: Array[Int], turn: Int): Int = {
    var node = 0
    while (column(node) >= 0) {
      node = if (ids(column(node)) < cut(node)) node + 1 else right(node)
    }
    cut(node) + (if (right(node) == 1) 0 else turn % right(node))
  }

  /** The leaf of every row of a column-wise table of ids, the row's number being its turn. */
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

  /** One leaf, whatever the ids. */
  val single: KdTree = new KdTree(Array(-1), Array(0), Array(1), 1)

  /**
   * The tree over a sample of the rows.
   *
   * @param columns  range ids (0 and up, null being 0), first by column, then by sampled row
   * @param leaves   number of cells to cut, at least 1
   * @param lexical  split the first column as long as it can be, then the second: a plain sort's
   *                 files; otherwise the column with the largest remaining spread, into the slabs
   *                 of a grid, or in halves where lookups open fewer files then: values that are
   *                 many rows' do not let a grid be even
   */
  def build(columns: Array[Array[Int]], leaves: Int, lexical: Boolean): KdTree =
    build(columns, leaves, lexical, Region, (_, _) => 0)

  /**
   * The same within each region, which has at least one leaf: with several regions, about `leaves`
   * together.
   *
   * @param idAt the first range id on the right side of a cut of a column at a value
   */
  def build(
      columns: Array[Array[Int]],
      leaves: Int,
      lexical: Boolean,
      regions: Regions,
      idAt: (Int, Any) => Int): KdTree = {
    require(leaves >= 1, s"a k-d tree has at least one leaf, not $leaves")
    if (columns.isEmpty || (leaves == 1 && regions == Region)) heavy(leaves)
    else {
      val ways = if (lexical || columns.length == 1) Seq(false) else Seq(true, false)
      val grown = ways.map { inGrid =>
        val builder = new KdTreeBuilder(columns, lexical, inGrid)
        builder.build(leaves, regions, idAt) -> builder.width
      }
      val least = grown.map(_._2).min
      grown.find(_._2 <= least * Grid.Tolerated).get._1
    }
  }

  /** One cell whose rows are dealt out over all leaves. */
  private def heavy(leaves: Int): KdTree = new KdTree(Array(-1), Array(0), Array(leaves), leaves)
}
