package io.pyzorder.layout.select

import org.apache.spark.sql.types.LongType
import org.scalatest.funsuite.AnyFunSuite

import io.pyzorder.index.model.ColumnStatistics
import io.pyzorder.layout.cells.{BoxSpace, FileBox}

class MergeSelectionSuite extends AnyFunSuite {

  private val target = 100L

  private def space(ranges: (Long, Long)*): BoxSpace =
    new BoxSpace(Seq(LongType),
      ranges.toIndexedSeq.map { case (low, high) =>
        FileBox(target,
          Seq(ColumnStatistics(
              Some((low, high)), exact = true, Some(0L), nanSeen = false, empty = false,
              settingsDependent = false)))
      })

  private val apart = Seq((0L, 99L), (100L, 199L), (200L, 299L), (300L, 399L))

  private def chosen(factor: Double, fresh: Seq[(Long, Long)], old: Seq[(Long, Long)]): Seq[Int] = {
    val files = fresh ++ old
    val (news, olds) = files.indices.partition(_ < fresh.length)
    MergeSelection.choose(space(files: _*), news, olds, target, factor, lexical = false).files
  }

  /**
   * The name of each case, the factor, the new files, the clustered files, and the positions of the
   * clustered files that should be chosen. Each position is an index into the list of the new files
   * followed by the clustered files.
   */
  private val cases = Seq[(String, Double, Seq[(Long, Long)], Seq[(Long, Long)], Seq[Int])](
    ("without a budget, no file is chosen", 0.0, Seq((0L, 399L)), Seq.fill(4)((0L, 399L)), Nil),
    ("no file is chosen if the new rows are beyond all files", 4.0, Seq((400L, 499L)), apart, Nil))

  for ((name, factor, fresh, old, expected) <- cases) test(name) {
    assert(chosen(factor, fresh, old) == expected)
  }

  for (factor <- Seq(1.0, 2.0, 3.0)) test(s"up to $factor times the new bytes are rewritten") {
    val files = chosen(factor, Seq((0L, 399L)), Seq.fill(6)((0L, 399L)))
    assert(files.nonEmpty && files.length <= factor)
    assert(files.distinct == files && files.forall((1 to 6).contains(_)))
  }

  test("excess is about 1 for disjoint files, and higher for files that overlap") {
    def excess(ranges: Seq[(Long, Long)]): Double =
      MergeSelection.excess(space(ranges: _*), ranges.indices, target, lexical = false)
    assert(excess(apart) < 1.5)
    assert(excess(Seq.fill(4)((0L, 399L))) >= 1.0)
    assert(excess(apart.map { case (low, high) => (low, high + 300) }) > excess(apart))
  }
}
