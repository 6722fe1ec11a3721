package io.pyzorder.index.store

/**
 * A snapshot's reference to one of its segments of sketches.
 *
 * @param file      the name of the file, which is next to the pointer
 * @param length    the size of the file in bytes
 * @param directory the position of the directory, which extends to the end of the file
 * @param checksum  the CRC-32 of the directory
 */
final case class SegmentRef(file: String, length: Long, directory: Long, checksum: Long)

object SegmentRef {

  /**
   * The maximum size of a segment. Writers keep a whole segment in memory, and readers keep its
   * whole directory.
   */
  val MaxBytes: Int = 64 << 20

  /** The maximum number of segments that a snapshot refers to. */
  val MaxSegments: Int = 64

  private val Name = "_sketch-(\\d{1,18})-[0-9a-f-]+".r

  /**
   * The index version for which the segment with this file name was written. None if this is not
   * the file name of a segment.
   */
  def versionOf(name: String): Option[Long] = name match {
    case Name(version) => Some(version.toLong)
    case _ => None
  }
}
