package io.pyzorder.index.sketch

import scala.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.scalatest.funsuite.AnyFunSuite

class DistinctHashesSuite extends AnyFunSuite {

  private val random = new Random(13)

  /** Takes the value itself as its hash. */
  private object Same extends ValueHash {
    override def apply(row: SpecializedGetters, ordinal: Int): Long = row.getLong(ordinal)
  }

  private def collected(hashes: Seq[Long], limit: Int = 1 << 20): Option[Seq[Long]] = {
    val distinct = new DistinctHashes(Same, limit)
    hashes.foreach(hash => distinct.add(InternalRow(hash), 0))
    distinct.result.map(_.toSeq)
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

  test("a column with too many hashes has none") {
    assert(collected(1L to 99L, limit = 100).exists(_.length == 99))
    assert(collected(1L to 100L, limit = 100).isEmpty)
    assert(collected(Seq.fill(1000)(7L), limit = 100).contains(Seq(7L)))
  }
}
