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
}
