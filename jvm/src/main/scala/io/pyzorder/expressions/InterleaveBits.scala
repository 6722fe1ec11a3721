package io.pyzorder.expressions

/**
 * Interleaves the bits of several columns into one z-value. In each group of bits, the bit of the
 * first column comes first. sql/FORMAT.md specifies the format, and pyzorder/interleave.py mirrors
 * this implementation.
 */
object InterleaveBits {

  /**
   * The maximum size of a z-value in bytes. If there are more than 128 columns, the lowest bits are
   * dropped.
   */
  val MaxBytes = 1024

  /** The number of bits in a z-value that is a non-negative long. */
  private val LongBits = 63

  /**
   * `spreadTables(n)(b)` is the byte b with its bits spread n places apart. The lowest bit remains
   * in place, and bits that do not fit into 64 bits are dropped. Sixteen tables would fill a
   * level-1 cache, but the z-values of n columns are computed with table n alone.
   */
  private val spreadTables: Array[Array[Long]] = Array.tabulate(LongBits + 1, 256) { (n, byte) =>
    (0 until 8).foldLeft(0L) { (spread, bit) =>
      if ((byte >>> bit & 1) == 1 && bit * n < 64) spread | (1L << (bit * n)) else spread
    }
  }

  /**
   * Interleaves 64 bits of each column into 8 bytes per column, but at most 1024 bytes in total.
   * The first column takes the highest bit of each group.
   */
  def bytes(columns: Array[Long]): Array[Byte] = {
    val n = columns.length
    val out = new Array[Byte](math.min(8 * n, MaxBytes))
    if (n <= 8) {
      val table = spreadTables(n)
      var at = 0
      var shift = 56
      while (shift >= 0) {
        var group = 0L
        var c = 0
        while (c < n) {
          group = group << 1 | table((columns(c) >>> shift).toInt & 0xff)
          c += 1
        }
        at = writeGroup(group, n, out, at)
        shift -= 8
      }
    } else {
      val octets = new Array[Int](n)
      var at = 0
      while (at < out.length) {
        val shift = 56 - 8 * (at / n)
        var c = 0
        while (c < n) {
          octets(c) = (columns(c) >>> shift).toInt & 0xff
          c += 1
        }
        at = writeOctets(octets, out, at)
      }
    }
    out
  }

  /**
   * Interleaves byte strings of any length, each zero-padded on the right to the length of the
   * longest one. The length of the result in bytes is the length of the longest string times the
   * number of columns, but at most 1024. Null is treated as empty.
   */
  def ofBytes(columns: Array[Array[Byte]]): Array[Byte] = {
    val n = columns.length
    var longest = 0
    var c = 0
    while (c < n) {
      if (columns(c) != null) longest = math.max(longest, columns(c).length)
      c += 1
    }
    val out = new Array[Byte](math.min(n.toLong * longest, MaxBytes.toLong).toInt)
    val octets = new Array[Int](n)
    var at = 0
    while (at < out.length) {
      val i = at / n
      c = 0
      while (c < n) {
        val column = columns(c)
        octets(c) = if (column != null && i < column.length) column(i) & 0xff else 0
        c += 1
      }
      at = writeOctets(octets, out, at)
    }
    out
  }

  /**
   * Interleaves `ids`, each between 0 and 2^bitsPerColumn - 1, into one non-negative long.
   * `bitsPerColumn` must be at most `bitsPerColumn(ids.length)`.
   */
  def long(ids: Array[Int], bitsPerColumn: Int): Long = {
    val n = ids.length
    var z = 0L
    var c = 0
    while (c < n) {
      z = z << 1 | spread(ids(c), n, bitsPerColumn)
      c += 1
    }
    z
  }

  /** The number of bits per column in a z-value that is a long: 63 / n, but at most 31. */
  def bitsPerColumn(n: Int): Int = {
    require(n >= 1 && n <= LongBits, s"a z-value of 63 bits can represent 1 to 63 columns, not $n")
    math.min(31, LongBits / n)
  }

  /** The lowest `bits` bits of `id`, spread n places apart. */
  def spread(id: Int, n: Int, bits: Int): Long = {
    val table = spreadTables(n)
    var spread = table(id & 0xff)
    var done = 8
    while (done < bits) {
      spread |= table(id >>> done & 0xff) << (done * n)
      done += 8
    }
    spread
  }

  /** `id`, one of `idCount` ids, stretched over all `bits` bits: floor(id * 2^bits / idCount). */
  def stretched(id: Int, idCount: Int, bits: Int): Int = ((id.toLong << bits) / idCount).toInt

  /**
   * Interleaves one byte from each of the n columns into n bytes of `out`, starting at `at`.
   * Returns the position after them.
   */
  private def writeOctets(octets: Array[Int], out: Array[Byte], at: Int): Int = {
    val n = octets.length
    if (n <= 8) {
      val table = spreadTables(n)
      var group = 0L
      var c = 0
      while (c < n) {
        group = group << 1 | table(octets(c))
        c += 1
      }
      writeGroup(group, n, out, at)
    } else {
      var c = 0
      while (c < n) {
        var left = octets(c)
        while (left != 0) {
          val bit = Integer.numberOfTrailingZeros(left)
          val place = (7 - bit) * n + c
          val index = at + place / 8
          if (index < out.length) out(index) = (out(index) | 0x80 >>> (place & 7)).toByte
          left &= left - 1
        }
        c += 1
      }
      at + n
    }
  }

  /**
   * Writes the lowest n bytes of `group`, starting with the highest of them. Stops at the end of
   * `out`.
   */
  private def writeGroup(group: Long, n: Int, out: Array[Byte], at: Int): Int = {
    var shift = 8 * (n - 1)
    var i = at
    while (shift >= 0 && i < out.length) {
      out(i) = (group >>> shift).toByte
      shift -= 8
      i += 1
    }
    at + n
  }
}
