package io.pyzorder.storage

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

/**
 * Derives names from the names of data files and folders. The derived names are short enough for
 * every store.
 */
private[pyzorder] object BoundedFileName {

  /**
   * The maximum length of a derived name in bytes. Local disks and HDFS allow 255 bytes, but the
   * name of Hadoop's checksum file is 5 bytes longer than the name of the file itself: it begins
   * with a dot and ends in `.crc`.
   */
  private val Most = 250

  /**
   * Joins the three parts. If the result is too long, `name` is replaced with its SHA-256 hash in
   * hexadecimal.
   */
  def of(prefix: String, name: String, suffix: String): String = {
    val whole = prefix + name + suffix
    if (fits(whole)) whole
    else {
      val digest = MessageDigest.getInstance("SHA-256").digest(name.getBytes(UTF_8))
      prefix + digest.map(byte => f"$byte%02x").mkString + suffix
    }
  }

  /** Whether the name is short enough for Hadoop to keep a checksum file beside the file. */
  def fits(name: String): Boolean = name.getBytes(UTF_8).length <= Most
}
