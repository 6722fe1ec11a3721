package io.pyzorder.skipping.predicate

import scala.util.Random

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.{DataType, DoubleType, IntegerType, LongType, StringType}
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

class RangeUnionSuite extends AnyFunSuite {

  private def union(dataType: DataType, limit: Int)(ranges: (Any, Any)*): Seq[(Any, Any)] = {
    val result = new RangeUnion(dataType, limit)
    ranges.foreach { case (low, high) => result.add(low, high) }
    result.result
  }

  test("ranges that overlap or touch are merged") {
    assert(union(IntegerType, 9)((5, 7), (1, 2), (6, 9), (2, 3)) == Seq((1, 3), (5, 9)))
  }

  test("the widest gaps remain") {
    assert(union(IntegerType, 2)((1, 1), (3, 3), (100, 100), (101, 105)) == Seq((1, 3), (100, 105)))
    assert(union(IntegerType, 1)((1, 1), (100, 100)) == Seq((1, 100)))
    val far = Seq(Long.MinValue, -1L, 1L, Long.MaxValue).map(v => (v, v): (Any, Any))
    assert(union(LongType, 3)(far: _*) ==
      Seq((Long.MinValue, Long.MinValue), (-1L, 1L), (Long.MaxValue, Long.MaxValue)))
    assert(union(DoubleType, 2)((Double.NegativeInfinity, 0.0), (1.0, 1.0), (9.0, 9.0)) ==
      Seq((Double.NegativeInfinity, 1.0), (9.0, 9.0)))
  }

  test("strings are merged evenly") {
    val letters = "abcdef".map(c => UTF8String.fromString(c.toString))
    assert(union(StringType, 3)(letters.map(c => (c, c)): _*) ==
      letters.grouped(2).map(pair => (pair.head, pair.last)).toSeq)
  }

  test("the union contains all ranges, in order, and at most as many as allowed") {
    val ordering = TypeUtils.getInterpretedOrdering(IntegerType)
    for (seed <- 0 until 2000) {
      val random = new Random(seed)
      val limit = 1 + random.nextInt(6)
      val ranges = Seq.fill(random.nextInt(60)) {
        val low = random.nextInt(200)
        (low, low + random.nextInt(5))
      }
      val found = union(IntegerType, limit)(ranges: _*)
      assert(found.length <= limit)
      assert(found.zip(found.drop(1)).forall { case (a, b) => ordering.lt(a._2, b._1) })
      assert(ranges.forall { case (low, high) =>
          found.exists(r => ordering.lteq(r._1, low) && ordering.lteq(high, r._2))
        }, s"seed $seed: $ranges, $found")
    }
  }
}
