package io.pyzorder.index.model

import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Arrays

/**
 * Shortens the bounds of long strings and binary values, which are ordered by their unsigned bytes.
 *
 * Proof. A prefix of a value is not greater than the value, so the lower bound may be truncated
 * anywhere. For the upper bound, let p be a prefix of the greatest value m. Let q be p up to and
 * including some byte below 0xFF, with that byte incremented. Since m begins with p, m is less than
 * q at that byte, and every other value is at most m. For text, the same argument applies to
 * characters instead of bytes, because UTF-8 preserves the order of code points and no character's
 * encoding is a prefix of another's. The bounds of text therefore remain text. If p contains
 * nothing that can be incremented, the column has no bounds.
 */
private[index] object TruncatedBounds {

  /** Values longer than this many bytes are truncated. */
  val MaxBytes: Int = 256

  def fits(value: Array[Byte]): Boolean = value.length <= MaxBytes

  /**
   * Bounds of at most MaxBytes bytes, except that incrementing a character may make the upper bound
   * one byte longer. None if there is no upper bound.
   */
  def of(min: Array[Byte], max: Array[Byte], isText: Boolean): Option[(Array[Byte], Array[Byte])] =
    upper(max, isText).map(bound => (lower(min), bound))

  private def lower(value: Array[Byte]): Array[Byte] = if (fits(value)) value else cut(value)

  private def upper(value: Array[Byte], isText: Boolean): Option[Array[Byte]] =
    if (fits(value)) {
      Some(value)
    } else {
      val prefix = cut(value)
      (if (isText) decode(prefix) else None) match {
        case Some(text) => raisedText(text).map(_.getBytes(UTF_8))
        case None => raisedBytes(prefix)
      }
    }

  private def raisedBytes(prefix: Array[Byte]): Option[Array[Byte]] = {
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

  private def raisedText(prefix: String): Option[String] = {
    var end = prefix.length
    while (end > 0 && prefix.codePointBefore(end) == Character.MAX_CODE_POINT) end -= 2
    if (end <= 0) {
      None
    } else {
      val last = prefix.codePointBefore(end)
      // Surrogates are not characters, so U+E000 follows U+D7FF.
      val next = if (last == Character.MIN_SURROGATE - 1) Character.MAX_SURROGATE + 1 else last + 1
      Some(prefix.substring(0, end - Character.charCount(last)) +
        new String(Character.toChars(next)))
    }
  }

  /** Decodes UTF-8. Returns None if the bytes are not valid UTF-8. */
  private def decode(bytes: Array[Byte]): Option[String] =
    try Some(UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString)
    catch { case _: CharacterCodingException => None }

  /**
   * A prefix of the value. If the bytes are UTF-8, the prefix does not end in the middle of a
   * character.
   */
  private def cut(value: Array[Byte]): Array[Byte] = {
    var end = MaxBytes
    while (end > MaxBytes - 4 && (value(end) & 0xc0) == 0x80) end -= 1
    Arrays.copyOf(value, if ((value(end) & 0xc0) == 0x80) MaxBytes else end)
  }
}
