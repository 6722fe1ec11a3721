package io.pyzorder.index

import java.util.Arrays

/**
 * Short bounds for long strings and binaries, in the order of unsigned bytes.
 *
 * Proof. A beginning of a value is not greater than the value, so the lower bound may be cut
 * anywhere. For the upper bound let p be the beginning of the greatest value m, and q be p up to
 * its last byte b below 0xFF, with b + 1 in its place: every value that begins with p, m included,
 * is less than q at that byte, and every other value is not greater than m. When all of p is 0xFF
 * there is no such q, and the column stays unbounded.
 */
private[index] object TruncatedBounds {

  /** Longer values are cut to at most this many bytes. */
  val MaxBytes: Int = 256

  def fits(value: Array[Byte]): Boolean = value.length <= MaxBytes

  /** Bounds of at most MaxBytes bytes each around `min` and `max`; None: there is no upper one. */
  def of(min: Array[Byte], max: Array[Byte]): Option[(Array[Byte], Array[Byte])] =
    upper(max).map(bound => (lower(min), bound))

  private def lower(value: Array[Byte]): Array[Byte] = if (fits(value)) value else cut(value)

  private def upper(value: Array[Byte]): Option[Array[Byte]] =
    if (fits(value)) {
      Some(value)
    } else {
      val prefix = cut(value)
      var last = prefix.length - 1
      while (last >= 0 && prefix(last) == 0xff.toByte) last -= 1
      if (last < 0) {
        None
      } else {
        val bound = Arrays.copyOf(prefix, last + 1)
        bound(last) = (bound(last) + 1).toByte
        Some(bound)
      }
    }

  /** The beginning, not cut inside a character where the bytes are UTF-8. */
  private def cut(value: Array[Byte]): Array[Byte] = {
    var end = MaxBytes
    while (end > MaxBytes - 4 && (value(end) & 0xc0) == 0x80) end -= 1
    Arrays.copyOf(value, if ((value(end) & 0xc0) == 0x80) MaxBytes else end)
  }
}
