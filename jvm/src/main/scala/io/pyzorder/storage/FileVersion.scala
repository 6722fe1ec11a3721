package io.pyzorder.storage

import org.apache.hadoop.fs.{FileStatus, Path}

/**
 * The properties that distinguish a file from another file that replaces it under the same name.
 * Hadoop's FileStatus cannot be used for this, because two FileStatus objects are equal if their
 * paths are equal.
 *
 * @param size             the size in bytes
 * @param modificationTime the modification time in milliseconds since the epoch
 */
final case class FileVersion(path: Path, size: Long, modificationTime: Long)

object FileVersion {

  def of(status: FileStatus): FileVersion =
    FileVersion(status.getPath, status.getLen, status.getModificationTime)
}
