package io.pyzorder.expressions

import java.util.{Arrays, Comparator, Random}

import org.apache.spark.sql.types.{LongType, StringType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * The loops that benchmarks/encoders.py measures. Each method runs its loop over `rows` rows seven
 * times and returns the nanoseconds per row of the fastest run. During the first runs, the JVM
 * compiles and optimizes the loop.
 */
final class EncoderBenchmark(rows: Int) {
  private val distinct = 1 << 12
  private val random = new Random(7)

  /**
   * The loops assign their results to this field so that the compiler does not eliminate them as
   * dead code.
   */
  @volatile var sink: Long = 0L

  /** Computes z-values as longs, using the lookup tables of InterleaveBits. */
  def longSpread(n: Int): Double = {
    val bits = InterleaveBits.bitsPerColumn(n)
    val ids = randomIds(n, bits)
    time(i => InterleaveBits.long(ids(i & (distinct - 1)), bits))
  }

  /** Computes z-values as longs, one bit at a time. */
  def longBitLoop(n: Int): Double = {
    val bits = InterleaveBits.bitsPerColumn(n)
    val ids = randomIds(n, bits)
    time { i =>
      val row = ids(i & (distinct - 1))
      var z = 0L
      var bit = bits - 1
      while (bit >= 0) {
        var c = 0
        while (c < n) {
          z = z << 1 | (row(c) >>> bit & 1)
          c += 1
        }
        bit -= 1
      }
      z
    }
  }

  /** Computes z-values as byte arrays, using the lookup tables of InterleaveBits. */
  def bytesSpread(n: Int): Double = {
    val columns = randomColumns(n)
    time(i => InterleaveBits.bytes(columns(i & (distinct - 1)))(0).toLong)
  }

  /** Computes z-values as byte arrays, one bit at a time. */
  def bytesBitLoop(n: Int): Double = {
    val columns = randomColumns(n)
    time { i =>
      val row = columns(i & (distinct - 1))
      val out = new Array[Byte](8 * n)
      var place = 0
      while (place < 64 * n) {
        val bit = row(place % n) >>> (63 - place / n) & 1
        out(place >> 3) = (out(place >> 3) | bit << (7 - (place & 7))).toByte
        place += 1
      }
      out(0).toLong
    }
  }

  /**
   * Finds the range ids of longs by searching `size` boundaries that are stored as primitive longs.
   */
  def searchPrimitive(size: Int): Double = {
    val sample = Iterator.fill[Any](size)(random.nextLong())
    val boundaries = Boundaries.fromValues(LongType, sample)
    val values = Array.fill(distinct)(random.nextLong())
    time(i => boundaries.rangeIdOfLong(values(i & (distinct - 1))).toLong)
  }

  /**
   * Finds the range ids of longs by searching `size` boundaries that are stored as boxed longs.
   */
  def searchBoxed(size: Int): Double = {
    val boundaries = Array.fill[AnyRef](size)(Long.box(random.nextLong()))
    Arrays.sort(boundaries)
    val values = Array.fill[AnyRef](distinct)(Long.box(random.nextLong()))
    time(i => boxedSearch(boundaries, values(i & (distinct - 1))))
  }

  /**
   * Finds the range ids of strings by searching `size` boundaries. Most comparisons need only the
   * first eight bytes.
   */
  def searchStrings(size: Int): Double = {
    val boundaries = Boundaries.fromValues(StringType, Iterator.fill[Any](size)(randomString()))
    val values = Array.fill(distinct)(randomString())
    time(i => boundaries.rangeIdOfUtf8(values(i & (distinct - 1))).toLong)
  }

  /**
   * Finds the range ids of strings by searching `size` boundaries, always comparing whole strings.
   */
  def searchStringsBoxed(size: Int): Double = {
    val boundaries = Array.fill[AnyRef](size)(randomString())
    Arrays.sort(boundaries)
    val values = Array.fill[AnyRef](distinct)(randomString())
    time(i => boxedSearch(boundaries, values(i & (distinct - 1))))
  }

  private val naturalOrder: Comparator[AnyRef] = new Comparator[AnyRef] {
    override def compare(a: AnyRef, b: AnyRef): Int =
      a.asInstanceOf[Comparable[AnyRef]].compareTo(b)
  }

  private def boxedSearch(boundaries: Array[AnyRef], value: AnyRef): Long =
    Arrays.binarySearch(boundaries, value, naturalOrder).toLong

  private def randomString(): UTF8String =
    UTF8String.fromString(java.lang.Long.toString(random.nextLong(), 36))

  private def randomIds(n: Int, bits: Int): Array[Array[Int]] =
    Array.fill(distinct, n)((random.nextInt() & Int.MaxValue) >>> (31 - bits))

  private def randomColumns(n: Int): Array[Array[Long]] =
    Array.fill(distinct, n)(random.nextLong())

  private def time(row: Int => Long): Double = {
    var best = Double.MaxValue
    var run = 0
    while (run < 7) {
      val start = System.nanoTime()
      var sum = 0L
      var i = 0
      while (i < rows) {
        sum += row(i)
        i += 1
      }
      best = math.min(best, (System.nanoTime() - start).toDouble / rows)
      sink = sum
      run += 1
    }
    best
  }
}
