package io.pyzorder.expressions

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

class InterleaveBitsSuite extends AnyFunSuite {

  private def text(value: Long, bits: Int): String =
    (bits - 1 to 0 by -1).map(bit => if ((value >>> bit & 1) == 1) '1' else '0').mkString

  /** The expected result: takes one character from each string of '0's and '1's in turn. */
  private def inTurn(columns: Seq[String]): String = columns.transpose.map(_.mkString).mkString

  private def text(bytes: Array[Byte]): String = bytes.map(b => text(b & 0xffL, 8)).mkString

  for (n <- Seq(1, 2, 3, 4, 7, 8, 9, 16, 63)) {
    test(s"$n range ids are interleaved into a long") {
      val random = new Random(n)
      val bits = InterleaveBits.bitsPerColumn(n)
      val last = Int.MaxValue >>> (31 - bits)
      val rows = Seq.fill(n)(0) +: Seq.fill(n)(last) +: Seq.fill(50)(
        Seq.fill(n)(random.nextInt() & last))
      for (ids <- rows) {
        val z = InterleaveBits.long(ids.toArray, bits)
        assert(z >= 0 && text(z, bits * n) == inTurn(ids.map(id => text(id.toLong, bits))))
      }
    }
  }

  for (n <- Seq(1, 2, 3, 8, 9, 17, 128, 130)) {
    test(s"$n columns of 64 bits are interleaved into at most 1024 bytes") {
      val random = new Random(n)
      val columns = Seq.fill(n)(random.nextLong())
      val expected = inTurn(columns.map(text(_, 64))).take(8 * InterleaveBits.MaxBytes)
      assert(text(InterleaveBits.bytes(columns.toArray)) == expected)
    }
  }

  for (n <- Seq(1, 2, 5, 8, 9)) test(s"$n byte strings are zero-padded and interleaved") {
    val random = new Random(n)
    val columns = Seq.tabulate(n)(i => Array.fill(i * 3 % 7)(random.nextInt().toByte))
    val longest = columns.map(_.length).max
    val expected = inTurn(columns.map(c => text(c).padTo(8 * longest, '0')))
    assert(text(InterleaveBits.ofBytes(columns.toArray)) == expected)
    val withNull = null +: columns
    assert(InterleaveBits.ofBytes(withNull.toArray).toSeq ==
      InterleaveBits.ofBytes((Array.empty[Byte] +: columns).toArray).toSeq)
  }
}
