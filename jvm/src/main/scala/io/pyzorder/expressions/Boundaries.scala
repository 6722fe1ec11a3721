package io.pyzorder.expressions

import java.util.{Arrays, Comparator}

import scala.collection.mutable.ArrayBuilder

import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.{ByteArray, UTF8String}

/**
 * The sorted distinct boundaries of a column. The range id of a value is its rank among the
 * boundaries. Boundaries of at most 64 bits are stored in one long[] (`OrderedBytes.longOf`).
 * Longer boundaries are stored as byte strings, with a long[] of their first eight bytes, so most
 * searches compare only longs.
 *
 * @param dataType the column's type
 * @param longs    the boundaries, or the longs made of their first eight bytes, in ascending order
 * @param wholes   the boundaries as byte strings, in ascending order; null if `longs` contains the
 *                 boundaries themselves
 */
final class Boundaries private (
    val dataType: DataType,
    longs: Array[Long],
    wholes: Array[Array[Byte]])
    extends Serializable {

  /** The number of boundaries. */
  def size: Int = longs.length

  /**
   * A number that represents boundary i and increases with i. For integers, dates, times, intervals
   * and decimals of at most 18 digits, it is linear in the value. For types stored as bytes, it is
   * linear in the first eight bytes. For float and double, which are ordered by their bits, it
   * grows roughly with the logarithm of the magnitude.
   */
  def position(i: Int): Double = longs(i).toDouble

  /**
   * The number of range ids: one for each gap between adjacent boundaries, one at each end, and one
   * for null.
   */
  def idCount: Int = size + 2

  /** The range id of a value: 0 for null, otherwise 1 + the number of boundaries <= `value`. */
  def rangeId(value: Any): Int = {
    if (value == null) 0
    else if (wholes == null) rangeIdOfLong(OrderedBytes.longOf(value, dataType))
    else if (shim.isByteOrderedString(dataType)) rangeIdOfUtf8(value.asInstanceOf[UTF8String])
    else rangeIdOfBytes(OrderedBytes.wholeOf(value, dataType))
  }

  /**
   * The range id of a value, given its `OrderedBytes.longOf`. Only for types that satisfy `isLong`.
   */
  def rangeIdOfLong(value: Long): Int = 1 + countUpTo(value)

  /** The range id of a string that is ordered by its bytes. */
  def rangeIdOfUtf8(value: UTF8String): Int = {
    val prefix = value.getPrefix ^ Long.MinValue
    val below = countBelow(prefix)
    if (below < longs.length && longs(below) == prefix) 1 + searchWhole(value.getBytes, below)
    else 1 + below
  }

  /**
   * The range id of a value, given its `OrderedBytes.wholeOf`. Not for types that satisfy `isLong`.
   */
  def rangeIdOfBytes(value: Array[Byte]): Int = {
    val prefix = ByteArray.getPrefix(value) ^ Long.MinValue
    val below = countBelow(prefix)
    if (below < longs.length && longs(below) == prefix) 1 + searchWhole(value, below)
    else 1 + below
  }

  /** A range id stretched over all `bits` bits: floor(id * 2^bits / idCount). */
  def stretched(id: Int, bits: Int): Int = InterleaveBits.stretched(id, idCount, bits)

  /**
   * The longs are divided into buckets that each span 2^shift numbers, starting from the smallest
   * long. Bucket b begins at index `starts(b)`. If the longs are distributed evenly, a search takes
   * one or two steps. Otherwise, it takes no longer than it would without buckets. There are at
   * most two buckets per long and at most MaxBuckets in all, so the buckets fit in the processor's
   * cache.
   */
  private val shift: Int =
    if (size < 2) 0
    else {
      val span = longs(size - 1) - longs(0) // unsigned
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

  /** The bucket of a number that lies between the smallest and the largest long. */
  private def bucketOf(value: Long): Int = ((value - longs(0)) >>> shift).toInt

  /** The number of `longs` <= `value`. */
  private def countUpTo(value: Long): Int = {
    val sorted = longs
    if (sorted.length == 0 || value < sorted(0)) 0
    else if (value >= sorted(sorted.length - 1)) sorted.length
    else searchBucket(sorted, value)
  }

  /** Searches one bucket. The only branch that can be mispredicted is the loop's exit. */
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

  /**
   * The number of `wholes` <= `value`. All elements before index `from` are known to be smaller.
   */
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

  /** The maximum number of buckets, each of which takes 4 bytes. */
  private val MaxBuckets = 1 << 16

  private val byteOrder: Comparator[Array[Byte]] = new Comparator[Array[Byte]] {
    override def compare(a: Array[Byte], b: Array[Byte]): Int = ByteArray.compareBinary(a, b)
  }

  /**
   * Creates boundaries from the distinct values in `values`, which may be in any order. Ignores
   * nulls.
   */
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
