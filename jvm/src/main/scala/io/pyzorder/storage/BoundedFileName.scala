package io.pyzorder.storage

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

/** Names that are made of a data file's, or of its folder's, and that every store takes. */
private[pyzorder] object BoundedFileName {

  /** Disks and HDFS take 255 bytes; the dot and `.crc` of Hadoop's checksums are 5 of them. */
  private val Most = 250

  /** `name` between the other two; where that is too long, the SHA-256 of it, in hexadecimal. */
  def of(prefix: String, name: String, suffix: String): String = {
    val whole = prefix + name + suffix
    if (fits(whole)) whole
    else {
      val digest = MessageDigest.getInstance("SHA-256").digest(name.getBytes(UTF_8))
      prefix + digest.map(byte => f"$byte%02x").mkString + suffix
    }
  }

  /** Whether a file of that name can have one with a checksum beside it. */
  def fits(name: String): Boolean = name.getBytes(UTF_8).length <= Most
}
