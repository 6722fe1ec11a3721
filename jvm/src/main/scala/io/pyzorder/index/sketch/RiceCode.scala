package io.pyzorder.index.sketch

import java.util.Arrays

/**
 * Encodes distinct numbers, in ascending order, as the gaps between them. Each gap is divided by
 * 2^rice. The quotient is written in unary (that many 1 bits and a 0 bit), followed by the
 * remainder in `rice` bits. The first bit is the highest bit of the first byte. The last byte is
 * padded with 1 bits. Because these bits never form a complete gap, a reader need not know how many
 * numbers there are.
 */
private[sketch] object RiceCode {

  /**
   * Appends the encoding of `values(from until until)`. The first gap is measured from `base`,
   * which must not exceed any of the values.
   */
  def encode(
      values: Array[Long],
      from: Int,
      until: Int,
      base: Long,
      rice: Int,
      to: BitSink): Unit = {
    var next = base
    var i = from
    while (i < until) {
      val gap = values(i) - next
      to.ones(gap >>> rice)
      to.bits(gap, rice)
      next = values(i) + 1
      i += 1
    }
    to.pad()
  }

  /** The number of bits needed to encode all values with base 0, without padding. */
  def sizeOf(values: Array[Long], rice: Int): Long = {
    var bits = values.length.toLong * (rice + 1)
    var next = 0L
    values.foreach { value =>
      bits += (value - next) >>> rice
      next = value + 1
    }
    bits
  }
}

/** A growing sequence of bits. */
private[sketch] final class BitSink {

  private var bytes = new Array[Byte](64)
  private var length = 0L // in bits

  /** Appends `count` 1 bits and one 0 bit. */
  def ones(count: Long): Unit = {
    var i = 0L
    while (i < count) {
      bit(1)
      i += 1
    }
    bit(0)
  }

  /** Appends the lowest `count` bits of a number, starting with the highest of them. */
  def bits(number: Long, count: Int): Unit = {
    var i = count - 1
    while (i >= 0) {
      bit(((number >>> i) & 1).toInt)
      i -= 1
    }
  }

  /** Fills the last byte with 1 bits. */
  def pad(): Unit = while ((length & 7) != 0) bit(1)

  private def bit(value: Int): Unit = {
    val at = Math.toIntExact(length >>> 3)
    if (at == bytes.length) bytes = Arrays.copyOf(bytes, 2 * at)
    if (value != 0) bytes(at) = (bytes(at) | (0x80 >>> (length & 7).toInt)).toByte
    length += 1
  }

  /** The complete bytes so far. */
  def result: Array[Byte] = Arrays.copyOf(bytes, Math.toIntExact(length >>> 3))
}

/** Decodes the numbers that RiceCode encoded in `bytes(from until until)`. */
private[sketch] final class RiceReader(
    bytes: Array[Byte],
    from: Int,
    until: Int,
    base: Long,
    rice: Int) {

  private var at = from.toLong << 3
  private val end = until.toLong << 3
  private var following = base

  /** The next number, or -1 if there is none. */
  def next(): Long = {
    var quotient = 0L
    var isOpen = true
    while (isOpen && at < end) if (bit() == 1) quotient += 1 else isOpen = false
    if (isOpen || end - at < rice) {
      at = end
      -1L
    } else {
      var remainder = 0L
      var i = 0
      while (i < rice) {
        remainder = remainder << 1 | bit()
        i += 1
      }
      val value = following + (quotient << rice | remainder)
      following = value + 1
      value
    }
  }

  private def bit(): Int = {
    val value = (bytes((at >>> 3).toInt) >>> (7 - (at & 7).toInt)) & 1
    at += 1
    value
  }
}
