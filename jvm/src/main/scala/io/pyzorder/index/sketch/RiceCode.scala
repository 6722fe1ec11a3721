package io.pyzorder.index.sketch

import java.nio.ByteBuffer
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

  /**
   * The Rice parameter that gives the shortest code: 2^rice is as close as possible to 0.69 times
   * the average gap.
   */
  def parameterFor(gap: Double): Int =
    math.max(0, math.round(math.log(0.69 * gap) / math.log(2)).toInt)

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
  private var complete = 0 // the number of complete bytes
  private var last = 0L // its lowest `open` bits follow the complete bytes
  private var open = 0 // less than 8

  /** Appends `count` 1 bits and one 0 bit. */
  def ones(count: Long): Unit = {
    var rest = count
    while (rest >= 31) {
      append(-1L, 31)
      rest -= 31
    }
    append(-2L, rest.toInt + 1)
  }

  /** Appends the lowest `count` bits of a number, starting with the highest of them. */
  def bits(number: Long, count: Int): Unit =
    if (count > 32) {
      append(number >>> 32, count - 32)
      append(number, 32)
    } else append(number, count)

  /** Fills the last byte with 1 bits. */
  def pad(): Unit = if (open > 0) append(-1L, 8 - open)

  /** Appends at most 32 bits. */
  private def append(number: Long, count: Int): Unit = {
    if (bytes.length - complete < 5) bytes = Arrays.copyOf(bytes, 2 * bytes.length)
    last = last << count | number & ((1L << count) - 1)
    open += count
    while (open >= 8) {
      open -= 8
      bytes(complete) = (last >>> open).toByte
      complete += 1
    }
  }

  /** The complete bytes so far. */
  def result: Array[Byte] = Arrays.copyOf(bytes, complete)
}

/** Decodes the numbers that RiceCode encoded in `bytes(from until until)`. */
private[sketch] final class RiceReader(
    bytes: Array[Byte],
    from: Int,
    until: Int,
    base: Long,
    rice: Int) {

  private val buffer = ByteBuffer.wrap(bytes)
  private var at = from.toLong << 3
  private val end = until.toLong << 3
  private var following = base

  /** The next number, or -1 if there is none. */
  def next(): Long = {
    val quotient = ones()
    if (quotient < 0 || end - at < rice) {
      at = end
      -1L
    } else {
      val remainder =
        if (rice > 32) bits(rice - 32) << 32 | bits(32) else if (rice > 0) bits(rice) else 0L
      val value = following + (quotient << rice | remainder)
      following = value + 1
      value
    }
  }

  /** Reads 1 bits and the 0 bit after them, and counts the 1 bits; -1 if there is no 0 bit. */
  private def ones(): Long = {
    var count = 0L
    var isOpen = true
    while (isOpen && at < end) {
      val here = math.min(RiceReader.Window, end - at).toInt
      val ones = math.min(java.lang.Long.numberOfLeadingZeros(~window), here)
      isOpen = ones == here
      count += ones
      at += (if (isOpen) ones else ones + 1)
    }
    if (isOpen) -1L else count
  }

  /** Reads between 1 and 32 bits. */
  private def bits(count: Int): Long = {
    val value = window >>> (64 - count)
    at += count
    value
  }

  /** A number whose highest 57 bits are the next bits, followed by 0 bits after the last byte. */
  private def window: Long = {
    val first = (at >>> 3).toInt
    val eight =
      if (first + 8 <= bytes.length) buffer.getLong(first)
      else {
        var some = 0L
        var i = first
        while (i < first + 8) {
          some = some << 8 | (if (i < bytes.length) bytes(i) & 255 else 0)
          i += 1
        }
        some
      }
    eight << (at & 7).toInt
  }
}

private object RiceReader {

  /** The number of bits that RiceReader reads at once. */
  private val Window = 57L
}
