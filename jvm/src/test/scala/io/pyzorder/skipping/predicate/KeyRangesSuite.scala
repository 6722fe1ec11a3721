package io.pyzorder.skipping.predicate

import scala.util.Random

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.{DataType, DoubleType, IntegerType}
import org.scalatest.funsuite.AnyFunSuite

class KeyRangesSuite extends AnyFunSuite {

  /** The statistics of files that contain these values; null stands for NULL. */
  private class Files(dataType: DataType, values: IndexedSeq[Seq[Any]], known: Int => Boolean)
      extends ColumnStatisticsView {
    override val ordering: Ordering[Any] = TypeUtils.getInterpretedOrdering(dataType)
    private def finite(file: Int): Seq[Any] =
      values(file).filter(v => v != null && !isNaN(v))
    private def isNaN(value: Any): Boolean = value match {
      case d: Double => d.isNaN
      case _ => false
    }
    override def bounded(file: Int): Boolean = known(file) && finite(file).nonEmpty
    override def empty(file: Int): Boolean = known(file) && finite(file).isEmpty
    override def nanSeen(file: Int): Boolean = !known(file) || values(file).exists(isNaN)
    override def mayBeNull(file: Int): Boolean = values(file).contains(null)
    override def mayHaveValue(file: Int): Boolean = !known(file) || values(file).exists(_ != null)
    override def oneValue(file: Int): Boolean = false
    override def min(file: Int): Any = finite(file).min(ordering)
    override def max(file: Int): Any = finite(file).max(ordering)
  }

  private def files(random: Random, value: () => Any): IndexedSeq[Seq[Any]] =
    IndexedSeq.fill(random.nextInt(6))(Seq.fill(random.nextInt(4))(value()))

  private def check(dataType: DataType, seed: Int)(value: Random => Any): Unit = {
    val random = new Random(seed)
    val column = FilterColumn(Seq("k"), dataType)
    val (ours, theirs) = (files(random, () => value(random)), files(random, () => value(random)))
    val known = theirs.map(_ => random.nextInt(9) > 0)
    val (left, right) = (new Files(dataType, ours, _ => true), new Files(dataType, theirs, known))
    val limit = 1 + random.nextInt(4)
    val ranges = new KeyRanges(dataType, limit)
    ours.indices.foreach(ranges.add(column, left, _))
    val KeyValues.Ranges(found, mayBeNaN) = ranges.result.get
    assert(found.length <= limit)
    val test = ColumnFilters.within(column, found, mayBeNaN).bind(_ => Some(right))
    val order = TypeUtils.getInterpretedOrdering(dataType)
    for (file <- theirs.indices) {
      val matches = theirs(file).filter(_ != null).exists(v =>
        ours.flatten.filter(_ != null).exists(order.equiv(_, v)))
      assert(!matches || test.mayMatch(file), s"seed $seed: $ours, $theirs, $found")
    }
  }

  test("a file with an equal value is kept") {
    val doubles = Seq(null, Double.NaN, -0.0, 0.0, -1.0, 1.0, 2.0, 5.0, Double.PositiveInfinity)
    for (seed <- 0 until 20000) {
      check(IntegerType, seed)(random => if (random.nextInt(9) == 0) null else random.nextInt(20))
      check(DoubleType, seed)(random => doubles(random.nextInt(doubles.length)))
    }
  }

  test("files between the ranges are skipped") {
    val column = FilterColumn(Seq("k"), IntegerType)
    def test(limit: Int): Seq[Boolean] = {
      val ours =
        new Files(IntegerType, IndexedSeq(Seq(10, 12), Seq(1, 3), Seq(3, 5), Seq(null)), _ => true)
      val ranges = new KeyRanges(IntegerType, limit)
      (0 to 3).foreach(ranges.add(column, ours, _))
      val KeyValues.Ranges(found, mayBeNaN) = ranges.result.get
      val theirs = IndexedSeq(Seq(0), Seq(5, 6), Seq(6, 9), Seq(9, 10), Seq(13), Seq(null))
      val files = ColumnFilters.within(column, found, mayBeNaN)
        .bind(_ => Some(new Files(IntegerType, theirs, _ => true)))
      theirs.indices.map(files.mayMatch)
    }
    assert(test(2) == Seq(false, true, false, true, false, false))
    assert(test(1) == Seq(false, true, true, true, false, false))
  }

  test("unknown bounds yield no ranges") {
    val column = FilterColumn(Seq("k"), IntegerType)
    val ranges = new KeyRanges(IntegerType, 9)
    ranges.add(column, new Files(IntegerType, IndexedSeq(Seq(1)), _ => false), 0)
    assert(ranges.result.isEmpty)
  }
}
