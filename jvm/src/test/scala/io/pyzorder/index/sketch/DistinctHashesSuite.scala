package io.pyzorder.index.sketch

import scala.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

class DistinctHashesSuite extends AnyFunSuite {

  private val random = new Random(13)

  /** Takes the value itself as its hash. */
  private object Same extends ValueHash {
    override def apply(row: SpecializedGetters, ordinal: Int): Long = row.getLong(ordinal)
  }

  private object Zero extends ValueHash {
    override def apply(row: SpecializedGetters, ordinal: Int): Long = 0L
  }

  private def collected(hashes: Seq[Long], limit: Int = 1 << 20): Option[Seq[Long]] = {
    val distinct = new DistinctHashes(Same, limit, None)
    hashes.foreach(hash => distinct.add(InternalRow(hash), 0))
    distinct.result.map(_.toSeq)
  }

  private def listed(values: Seq[Any], dataType: DataType): Option[Seq[Any]] = {
    val bytes = ValueBytes.of(dataType).get
    val distinct = new DistinctHashes(ValueHash.of(dataType).get, 1 << 20, Some(bytes))
    values.foreach(value => distinct.add(InternalRow(value), 0))
    assert(distinct.result.isDefined)
    distinct.values.map(_.values.map(bytes.decode).toSeq)
  }

  private val extreme = Seq(0L, Long.MaxValue, Long.MinValue, -1L)

  for (count <- Seq(0, 1, 100, 512, 513, 3000, 60000)) {
    test(s"each of $count hashes is kept once") {
      val hashes = Seq.fill(count)(random.nextLong()) ++ extreme
      val found = collected(random.shuffle(hashes ++ hashes)).get
      assert(found.length == found.distinct.length)
      assert(found.toSet == hashes.toSet)
    }
  }

  test("hashes that agree in their highest bits are kept") {
    val hashes = (0L until 3000L) ++ (0L until 3000L).map(-1L - _)
    assert(collected(random.shuffle(hashes ++ hashes)).get.toSet == hashes.toSet)
  }

  test("a few values take little memory, however often they occur") {
    val hashes = Seq.fill(20)(random.nextLong())
    val found = collected(Seq.fill(100000)(hashes(random.nextInt(20))), limit = 21).get
    assert(found.toSet == hashes.toSet)
  }

  test("few values are listed") {
    val decimals = Seq("0", "1.5", "-1.5", "99999999999999999999.25").map(Decimal(_)).map { d =>
      d.changePrecision(30, 2)
      d
    }
    val cases = Seq(
      (IntegerType, Seq(0, 1, -1, Int.MaxValue, Int.MinValue)),
      (LongType, extreme),
      (ByteType, Seq[Byte](0, 127, -128)),
      (StringType, Seq("", "a", "aa", "é").map(UTF8String.fromString)),
      (DecimalType(30, 2), decimals),
      (DecimalType(9, 2), Seq(Decimal(125, 9, 2), Decimal(-125, 9, 2))))
    cases.foreach { case (dataType, values) =>
      assert(listed(values ++ values.reverse, dataType).get.toSet == values.toSet, dataType)
    }
    val binaries = listed(Seq(Array[Byte](1, -1), Array[Byte](1), Array[Byte](1, -1)), BinaryType)
    assert(binaries.get.map(_.asInstanceOf[Array[Byte]].toSeq) == Seq(Seq(1), Seq(1, -1)))
    assert(listed(0 until 255, IntegerType).exists(_.length == 255))
    assert(listed(0 until 256, IntegerType).isEmpty)
    assert(listed(Seq("a" * 8191).map(UTF8String.fromString), StringType).isDefined)
    assert(listed(Seq("a" * 8192).map(UTF8String.fromString), StringType).isEmpty)
    Seq(BooleanType, FloatType, DoubleType).foreach(t => assert(ValueBytes.of(t).isEmpty))
  }

  test("different values with the same hash are both listed") {
    val distinct = new DistinctHashes(Zero, 100, ValueBytes.of(LongType))
    Seq(5L, 6L, 5L, 7L).foreach(value => distinct.add(InternalRow(value), 0))
    assert(distinct.values.get.ids.length == 3)
  }

  test("a list is lost if the hashes are") {
    val distinct = new DistinctHashes(Same, 2, ValueBytes.of(LongType))
    (1L to 2000L).foreach(value => distinct.add(InternalRow(value % 200), 0))
    assert(distinct.result.isEmpty && distinct.values.isEmpty)
  }

  test("a column with too many hashes has none") {
    assert(collected(1L to 99L, limit = 100).exists(_.length == 99))
    assert(collected(1L to 100L, limit = 100).isEmpty)
    assert(collected(Seq.fill(1000)(7L), limit = 100).contains(Seq(7L)))
  }
}
