package io.pyzorder.index.sketch

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

/** Compares RiceCode with the description in FORMAT.md, which is followed here bit by bit. */
class RiceCodeSuite extends AnyFunSuite {

  private val random = new Random(11)

  /** The bits of a distance, as a string of 0 and 1. */
  private def bitsOf(distance: Long, rice: Int): String =
    "1" * (distance >>> rice).toInt + "0" +
      (rice - 1 to 0 by -1).map(i => (distance >>> i) & 1).mkString

  private def bytesOf(bits: String): Array[Byte] =
    bits.padTo((bits.length + 7) / 8 * 8, '1').grouped(8).map(Integer.parseInt(_, 2).toByte).toArray

  /** Decodes all numbers in a string of 0 and 1. */
  private def numbersIn(bits: String, base: Long, rice: Int): List[Long] = {
    val quotient = bits.indexOf('0')
    if (quotient < 0 || bits.length < quotient + 1 + rice) Nil
    else {
      val rest = bits.drop(quotient + 1)
      val remainder = rest.take(rice).foldLeft(0L)((number, bit) => number << 1 | (bit - '0'))
      val number = base + (quotient.toLong << rice | remainder)
      number :: numbersIn(rest.drop(rice), number + 1, rice)
    }
  }

  private def read(reader: RiceReader): List[Long] =
    Iterator.continually(reader.next()).takeWhile(_ >= 0).toList

  /** Random distances, some of which have a long run of 1 bits. Their sum is less than 2^62. */
  private def distances(rice: Int): Seq[Long] = Seq.fill(if (rice > 48) 1 else random.nextInt(30)) {
    val longest = if (rice > 48) 1 else if (random.nextInt(4) == 0) 130 else 4
    random.nextInt(longest).toLong << rice | random.nextLong() >>> 1 & (1L << rice) - 1
  }

  for (rice <- 0 to 62) {
    test(s"numbers are encoded and decoded with $rice bits of remainder") {
      (0 until 50).foreach { _ =>
        val all = distances(rice)
        val base = random.nextInt(1000).toLong
        val values = all.scanLeft(base)((next, distance) => next + distance + 1).tail.map(_ - 1)
        val (before, after) = (random.nextInt(3), random.nextInt(3))
        val padded = Array.fill(before)(-1L) ++ values ++ Array.fill(after)(-1L)
        val sink = new BitSink
        RiceCode.encode(padded, before, before + all.length, base, rice, sink)
        val code = sink.result
        assert(code.toSeq == bytesOf(all.map(bitsOf(_, rice)).mkString).toSeq)
        if (base == 0) assert((RiceCode.sizeOf(values.toArray, rice) + 7) / 8 == code.length)

        val (left, right) = (new Array[Byte](random.nextInt(9)), new Array[Byte](random.nextInt(9)))
        val around = left ++ code ++ right
        val reader = new RiceReader(around, left.length, left.length + code.length, base, rice)
        assert(read(reader) == values)
        assert(reader.next() == -1)
      }
    }
  }

  test("any bytes are decoded as FORMAT.md says") {
    (0 until 20000).foreach { _ =>
      val rice = random.nextInt(20)
      val bytes = new Array[Byte](random.nextInt(40))
      random.nextBytes(bytes)
      if (random.nextBoolean()) {
        bytes.indices.foreach(i => if (random.nextInt(4) > 0) bytes(i) = -1)
      }
      val from = random.nextInt(bytes.length + 1)
      val until = from + random.nextInt(bytes.length - from + 1)
      val bits = bytes.slice(from, until)
        .map(byte => (7 to 0 by -1).map(i => (byte >>> i) & 1).mkString).mkString
      assert(read(new RiceReader(bytes, from, until, 5, rice)) == numbersIn(bits, 5, rice))
    }
  }
}
