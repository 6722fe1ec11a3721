package io.pyzorder.index.sketch

import java.util.Arrays

/**
 * The distinct hashes of one column's values in one file, truncated to their highest bits and
 * encoded with RiceCode. Looking up a value that is in the file always succeeds. Looking up any
 * other value yields a false positive with a probability of `count / 2^bits`.
 *
 * @param bits  the number of bits kept from each hash
 * @param rice  the parameter of the Rice code
 * @param count the number of distinct hashes after truncation
 */
final case class CodedHashes(bits: Int, rice: Int, count: Int, code: Array[Byte])
    extends ColumnSketch {

  override def size: Long = code.length.toLong

  override def hashes: Option[CodedHashes] = Some(this)

  override def union(other: ColumnSketch): Option[ColumnSketch] =
    other.hashes.flatMap(unionWith)

  /** The hashes in ascending order, as `bits`-bit numbers. */
  def prefixes: Array[Long] = {
    val reader = new RiceReader(code, 0, code.length, 0L, rice)
    Array.fill(count)(reader.next())
  }

  /**
   * These hashes, truncated further to fit into `most` bytes; None if too few bits would remain.
   */
  override def limitedTo(most: Long): Option[CodedHashes] =
    if (code.length <= most) Some(this) else CodedHashes.fitting(prefixes, bits, most)

  /** Merges the hashes of two parts of a file; None if too few bits would remain. */
  private[sketch] def unionWith(other: CodedHashes): Option[CodedHashes] =
    if (count == 0) Some(other)
    else if (other.count == 0) Some(this)
    else {
      val common = math.min(bits, other.bits)
      val all = CodedHashes.cut(prefixes, bits - common) ++
        CodedHashes.cut(other.prefixes, other.bits - common)
      Arrays.sort(all)
      CodedHashes.fitting(CodedHashes.cut(all, 0), common, Long.MaxValue)
    }
}

object CodedHashes {

  /**
   * The smallest useful ratio of 2^bits to the number of hashes. At this ratio, 10% of lookups for
   * values that are not in the file are false positives.
   */
  private val WorstRatio = 10L

  /**
   * The binary logarithm of the largest useful ratio of 2^bits to the number of hashes, at which
   * the false-positive rate is 0.006%.
   */
  private val MostPrecision = 14

  /**
   * Truncates the hashes to as many bits as are useful and fit into `most` bytes, and encodes them.
   * None if too few bits fit.
   */
  def of(hashes: Array[Long], most: Long): Option[CodedHashes] = {
    val bits = math.min(widthOf(hashes.length) + MostPrecision, 62)
    val prefixes = hashes.map(_ >>> (64 - bits))
    Arrays.sort(prefixes)
    fitting(cut(prefixes, 0), bits, most)
  }

  /**
   * Encodes sorted, distinct `bits`-bit numbers in at most `most` bytes. If necessary, drops the
   * lowest bits, equally many from each number. None if too few bits fit.
   */
  private def fitting(sorted: Array[Long], bits: Int, most: Long): Option[CodedHashes] = {
    Iterator.range(bits, 0, -1)
      .map(kept => (kept, cut(sorted, bits - kept)))
      .takeWhile { case (kept, values) => values.length * WorstRatio <= (1L << kept) }
      .find { case (kept, values) =>
        (RiceCode.sizeOf(values, riceOf(values.length, kept)) + 7) / 8 <= most
      }
      .map { case (kept, values) => coded(values, kept) }
  }

  /** Encodes sorted, distinct `bits`-bit numbers. */
  def coded(sorted: Array[Long], bits: Int): CodedHashes =
    coded(sorted, bits, riceOf(sorted.length, bits))

  private[sketch] def coded(sorted: Array[Long], bits: Int, rice: Int): CodedHashes = {
    val sink = new BitSink
    RiceCode.encode(sorted, 0, sorted.length, 0L, rice, sink)
    CodedHashes(bits, rice, sorted.length, sink.result)
  }

  /** Removes the lowest `lowest` bits from sorted numbers, and then removes duplicates. */
  private def cut(sorted: Array[Long], lowest: Int): Array[Long] = {
    val values = new Array[Long](sorted.length)
    var count = 0
    var i = 0
    while (i < sorted.length) {
      val value = sorted(i) >>> lowest
      if (count == 0 || values(count - 1) != value) {
        values(count) = value
        count += 1
      }
      i += 1
    }
    if (count == values.length) values else Arrays.copyOf(values, count)
  }

  /** The number of bits needed to represent a count. */
  private def widthOf(count: Int): Int = 32 - Integer.numberOfLeadingZeros(count)

  private def riceOf(count: Int, bits: Int): Int = {
    RiceCode.parameterFor((1L << bits).toDouble / math.max(1, count))
  }
}
