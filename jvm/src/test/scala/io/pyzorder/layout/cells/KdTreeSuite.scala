package io.pyzorder.layout.cells

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

class KdTreeSuite extends AnyFunSuite {

  private val rows = 4000

  private def uniform(distinct: Int)(random: Random): Array[Int] =
    Array.fill(rows)(random.nextInt(distinct))

  private def skewed(random: Random): Array[Int] =
    Array.fill(rows)(if (random.nextInt(10) < 9) 5 else random.nextInt(50))

  /** The name of each table, and a generator of ids for each of its columns. */
  private val tables = Seq[(String, Seq[Random => Array[Int]])](
    "one uniform column" -> Seq(uniform(1000) _),
    "two uniform columns" -> Seq(uniform(1000) _, uniform(1000) _),
    "three columns, one with two values" -> Seq(uniform(300) _, uniform(2) _, uniform(300) _),
    "a frequent value" -> Seq(skewed _, uniform(1000) _),
    "a single value" -> Seq(uniform(1) _))

  for ((name, columns) <- tables; leaves <- Seq(1, 2, 7, 16); lexical <- Seq(false, true)) {
    test(s"$name, $leaves leaves, ${if (lexical) "sorted" else "clustered"}: every leaf has rows") {
      val random = new Random(7)
      val ids = columns.map(_(random)).toArray
      val tree = KdTree.build(ids, leaves, lexical)
      assert(tree.leafCount == leaves)
      assert(tree.leaves(ids).distinct.sorted.toSeq == (0 until leaves))
    }
  }

  test("the leaves of a single column follow the column's order and have equally many rows") {
    val ids = Array.tabulate(1000)(identity)
    val leaf = KdTree.build(Array(ids), 8, lexical = false).leaves(Array(ids)).toSeq
    assert(leaf == leaf.sorted)
    assert(leaf.groupBy(identity).values.forall(_.length == 125))
  }

  test("a plain sort cuts only the first column while it can be cut") {
    val random = new Random(7)
    val ids = Array.fill(2)(uniform(1000)(random))
    val leaf = KdTree.build(ids, 8, lexical = true).leaves(ids)
    val sorted = ids(0).zip(leaf).sortBy(_._1).map(_._2).toSeq
    assert(sorted == sorted.sorted)
  }

  test("rows with equal ids are distributed over the leaves in turn") {
    val tree = KdTree.build(Array(Array.fill(100)(3)), 4, lexical = false)
    assert((0 until 8).map(tree.leaf(Array(3), _)) == Seq(0, 1, 2, 3, 0, 1, 2, 3))
  }

  /** Queries that each read the rows whose ids are in a box. */
  private final class Boxes(
      boxes: Seq[Seq[(Int, Int)]],
      evidence: Int,
      override val evenly: Seq[Int] = Seq(0, 1))
      extends CellQueries {
    override def edges: Seq[Seq[Int]] =
      boxes.head.indices.map(c => boxes.flatMap(box => Seq(box(c)._1, box(c)._2 + 1)).distinct)
    override def apply(cells: IndexedSeq[CellBounds]): Seq[CellQuery] = boxes.map { box =>
      CellQuery(1, evidence,
        cells.map(cell =>
          box.indices.forall(c =>
            cell.least(c) <= box(c)._2 && cell.greatest(c) >= box(c)._1)).toArray)
    }
  }

  /** The number of rows in the leaves that contain a row of the box. */
  private def read(tree: KdTree, ids: Array[Array[Int]], box: Seq[(Int, Int)]): Int = {
    val leaf = tree.leaves(ids)
    def isIn(row: Int): Boolean =
      box.indices.forall(c => ids(c)(row) >= box(c)._1 && ids(c)(row) <= box(c)._2)
    val opened = leaf.indices.filter(isIn).map(leaf(_)).toSet
    leaf.count(opened(_))
  }

  for ((name, columns) <- tables if columns.length == 2; leaves <- Seq(2, 7, 16, 40)) {
    test(s"$name, $leaves leaves, cut by queries: every leaf has rows") {
      val random = new Random(11)
      val ids = columns.map(_(random)).toArray
      val boxes = Seq.fill(10)(Seq.fill(2) {
        val from = random.nextInt(900)
        from -> (from + random.nextInt(100))
      })
      val tree = KdTree.build(ids, leaves, lexical = false, Some(new Boxes(boxes, 3)))
      assert(tree.leafCount == leaves)
      assert(tree.leaves(ids).distinct.sorted.toSeq == (0 until leaves))
    }
  }

  private val rare = {
    val random = new Random(3)
    Array(uniform(1000)(random), Array.fill(rows)(if (random.nextInt(8) == 0) 2 else 1))
  }

  /** Ten ranges of the first column, among the rows with a rare value in the second. */
  private val ranges = Seq.tabulate(10)(i => Seq((i * 100, i * 100 + 99), (2, 2)))

  test("cells are cut at the queries' edges, and more finely where the queries read") {
    val even = KdTree.build(rare, 32, lexical = false)
    val cut = KdTree.build(rare, 32, lexical = false, Some(new Boxes(ranges, 1)))
    def sum(tree: KdTree): Int = ranges.map(read(tree, rare, _)).sum
    assert(sum(cut) <= 0.8 * sum(even))
    val sizes = cut.leaves(rare).groupBy(identity).values.map(_.length)
    assert(sizes.max <= 2 * rows / 32 && sizes.min >= rows / 32 / 3)
  }

  test("a few examples of queries do not decide where cells are cut") {
    val few = Some(new Boxes(ranges.take(2), 1, evenly = Seq(0)))
    val tree = KdTree.build(rare, 16, lexical = false, few)
    assert(tree.cutColumns == Seq(0))
    val fixed = Some(new Boxes(Seq(Seq((0, 999), (2, 2))), 3, evenly = Seq(0)))
    assert(KdTree.build(rare, 16, lexical = false, fixed).cutColumns.toSet == Set(0, 1))
  }
}
