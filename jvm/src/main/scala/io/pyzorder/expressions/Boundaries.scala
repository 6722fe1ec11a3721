package io.pyzorder.expressions

import java.util.{Arrays, Comparator}

import scala.collection.mutable.ArrayBuilder

import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.{ByteArray, UTF8String}

/**
 * One column's sorted distinct boundaries, and the rank of any value among them. Numbers are kept
 * as one long[] (`OrderedBytes.longOf`), all else as whole bytes behind a long[] of their first
 * eight, so that most searches compare longs only.
 *
 * @param dataType the column's type
 * @param longs    ascending: the boundaries, or what the first eight bytes of each make
 * @param wholes   the boundaries' whole bytes, ascending; null when `longs` holds all
 */
final class Boundaries private (
    val dataType: DataType,
    longs: Array[Long],
    wholes: Array[Array[Byte]])
    extends Serializable {

  /** Number of boundaries. */
  def size: Int = longs.length

  /**
   * Where boundary i lies, as a number in the boundaries' order: of numbers and times proportional
   * to their values, of all else to their first eight bytes.
   */
  def position(i: Int): Double = longs(i).toDouble

  /** Number of range ids: one between any two boundaries, one at each end, one for null. */
  def idCount: Int = size + 2

  /** The range id of a value: 0 for null, else 1 + the number of boundaries <= `value`. */
  def rangeId(value: Any): Int = {
    if (value == null) 0
    else if (wholes == null) rangeIdOfLong(OrderedBytes.longOf(value, dataType))
    else if (shim.isByteOrderedString(dataType)) rangeIdOfUtf8(value.asInstanceOf[UTF8String])
    else rangeIdOfBytes(OrderedBytes.wholeOf(value, dataType))
  }

  /** The range id of a value given as `OrderedBytes.longOf`; only for types that `isLong`. */
  def rangeIdOfLong(value: Long): Int = 1 + countUpTo(value)

  /** The range id of a string in the order of its bytes. */
  def rangeIdOfUtf8(value: UTF8String): Int = {
    val prefix = value.getPrefix ^ Long.MinValue
    val below = countBelow(prefix)
    if (below < longs.length && longs(below) == prefix) 1 + searchWhole(value.getBytes, below)
    else 1 + below
  }

  /** The range id of a value given as `OrderedBytes.wholeOf`; not for types that `isLong`. */
  def rangeIdOfBytes(value: Array[Byte]): Int = {
    val prefix = ByteArray.getPrefix(value) ^ Long.MinValue
    val below = countBelow(prefix)
    if (below < longs.length && longs(below) == prefix) 1 + searchWhole(value, below)
    else 1 + below
  }

  /** A range id stretched over all of `bits` bits: floor(id * 2^bits / idCount). */
  def stretched(id: Int, bits: Int): Int = InterleaveBits.stretched(id, idCount, bits)

  /**
   * The longs lie in buckets of 2^shift numbers each, counted from the least one, of which bucket b
   * begins at `starts(b)`: evenly spread ones are found in a step or two, others no slower than
   * without. There are about two buckets a long, so that all of it stays in the processor's cache.
   */
  private val shift: Int =
    if (size < 2) 0
    else {
      val span = longs(size - 1) - longs(0) // as an unsigned number
      val buckets = math.min(2 * size, Boundaries.MaxBuckets)
      math.max(0,
        64 - java.lang.Long.numberOfLeadingZeros(span) -
          (31 - Integer.numberOfLeadingZeros(buckets)))
    }

  private val starts: Array[Int] =
    if (size == 0) Array(0)
    else {
      val starts = new Array[Int](bucketOf(longs(size - 1)) + 2)
      longs.foreach(long => starts(bucketOf(long) + 1) += 1)
      var b = 1
      while (b < starts.length) { starts(b) += starts(b - 1); b += 1 }
      starts
    }

  /** Of a number that is not less than the least long, nor greater than the greatest. */
  private def bucketOf(value: Long): Int = ((value - longs(0)) >>> shift).toInt

  /** Number of `longs` <= `value`. The loop has no branch to mispredict but its end. */
  private def countUpTo(value: Long): Int = {
    val sorted = longs
    if (sorted.length == 0 || value < sorted(0)) 0
    else if (value >= sorted(sorted.length - 1)) sorted.length
    else searchBucket(sorted, value)
  }

  private def searchBucket(sorted: Array[Long], value: Long): Int = {
    val bucket = bucketOf(value)
    var base = starts(bucket)
    var left = starts(bucket + 1) - base
    while (left > 0) {
      val half = (left + 1) >>> 1
      base += (if (sorted(base + half - 1) <= value) half else 0)
      left -= half
    }
    base
  }

  private def countBelow(value: Long): Int =
    if (value == Long.MinValue) 0 else countUpTo(value - 1)

  /** Number of `wholes` <= `value`, which are at least `from`: all before it are less. */
  private def searchWhole(value: Array[Byte], from: Int): Int = {
    var low = from
    var high = wholes.length
    while (low < high) {
      val middle = (low + high) >>> 1
      if (ByteArray.compareBinary(wholes(middle), value) <= 0) low = middle + 1 else high = middle
    }
    low
  }
}

object Boundaries {

  /** 4 bytes each. */
  private val MaxBuckets = 1 << 16

  private val byteOrder: Comparator[Array[Byte]] = new Comparator[Array[Byte]] {
    override def compare(a: Array[Byte], b: Array[Byte]): Int = ByteArray.compareBinary(a, b)
  }

  /** Boundaries at each distinct value among `values`, in any order; nulls are left out. */
  def fromValues(dataType: DataType, values: Iterator[Any]): Boundaries = {
    require(OrderedBytes.supports(dataType), s"values of type ${dataType.sql} have no order")
    val present = values.filter(_ != null)
    if (OrderedBytes.isLong(dataType)) {
      val longs = ArrayBuilder.make[Long]
      present.foreach(value => longs += OrderedBytes.longOf(value, dataType))
      new Boundaries(dataType, distinct(longs.result()), null)
    } else {
      val wholes = ArrayBuilder.make[Array[Byte]]
      present.foreach(value => wholes += OrderedBytes.wholeOf(value, dataType))
      val sorted = distinct(wholes.result())
      new Boundaries(dataType, sorted.map(ByteArray.getPrefix(_) ^ Long.MinValue), sorted)
    }
  }

  private def distinct(values: Array[Long]): Array[Long] = {
    Arrays.sort(values)
    var kept = 0
    var i = 0
    while (i < values.length) {
      if (kept == 0 || values(i) != values(kept - 1)) {
        values(kept) = values(i)
        kept += 1
      }
      i += 1
    }
    Arrays.copyOf(values, kept)
  }

  private def distinct(values: Array[Array[Byte]]): Array[Array[Byte]] = {
    Arrays.sort(values, byteOrder)
    var kept = 0
    var i = 0
    while (i < values.length) {
      if (kept == 0 || byteOrder.compare(values(i), values(kept - 1)) != 0) {
        values(kept) = values(i)
        kept += 1
      }
      i += 1
    }
    Arrays.copyOf(values, kept)
  }
}
