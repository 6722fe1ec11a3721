package io.pyzorder.skipping.predicate

import scala.util.Random

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.{BinaryType, DataType, DoubleType, IntegerType, StringType}
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

class KeyValuesSuite extends AnyFunSuite {

  private def collected(dataType: DataType, limit: Int, values: Any*): KeyValues = {
    val builder = new KeyValues.Builder(dataType, limit)
    values.foreach(builder.add)
    builder.result
  }

  test("few values are kept, many are combined into ranges") {
    assert(collected(IntegerType, 3, 5, 7, null, 105, 7) == KeyValues.Each(Set(5, 7, 105)))
    val ranges = KeyValues.Ranges(IndexedSeq((5, 7), (105, 105)), mayBeNaN = false)
    assert(collected(IntegerType, 2, 5, 7, null, 105) == ranges)
    assert(Seq(ranges.toString, collected(IntegerType, 2, 5).toString) == Seq("2 ranges",
      "1 value"))
  }

  test("NaN is in no range") {
    assert(collected(DoubleType, 1, 1.0, Double.NaN, 2.0) ==
      KeyValues.Ranges(IndexedSeq((1.0, 2.0)), mayBeNaN = true))
  }

  test("the values of others are added") {
    val builder = new KeyValues.Builder(IntegerType, 2)
    builder.addAll(collected(IntegerType, 9, 4, 8))
    assert(builder.result == KeyValues.Each(Set(4, 8)))
    builder.addAll(collected(IntegerType, 1, 90, 91))
    assert(builder.result == KeyValues.Ranges(IndexedSeq((4, 8), (90, 91)), mayBeNaN = false))
  }

  test("every value passes the test") {
    def text(i: Int): Any = UTF8String.fromString(s"key $i")
    def bytes(i: Int): Any = s"key $i".getBytes
    def number(i: Int): Any = i match {
      case 0 => Double.NaN
      case 1 => -0.0
      case 2 => 0.0
      case 3 => Double.PositiveInfinity
      case _ => i.toDouble
    }
    val types = Seq[(DataType, Int => Any)](
      IntegerType -> identity, DoubleType -> number, StringType -> text, BinaryType -> bytes)
    for ((dataType, value) <- types; seed <- 0 until 500) {
      val random = new Random(seed)
      val ordering = TypeUtils.getInterpretedOrdering(dataType)
      def draw() = value(random.nextInt(20))
      val values = Seq.fill(random.nextInt(9))(draw())
      val limit = 1 + random.nextInt(9)
      val found = collected(dataType, limit, values: _*)
      val test = found.test(dataType)
      assert(!test(null))
      assert(values.forall(test), s"seed $seed: $values, $found")
      val other = draw()
      if (found.isInstanceOf[KeyValues.Each])
        assert(test(other) == values.exists(ordering.equiv(_, other)),
          s"seed $seed: $found, $other")
    }
  }
}
