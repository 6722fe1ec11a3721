package io.pyzorder.storage

/**
 * One data file as seen at some moment. The file at this path counts as unchanged while its size
 * and modification time both match.
 *
 * @param path             the name that TableFolder.relativize gives it
 * @param size             the size in bytes
 * @param modificationTime the modification time in milliseconds since the epoch, as reported by the
 *                         file system
 */
final case class FileRef(path: String, size: Long, modificationTime: Long) {

  def name: String = path.substring(path.lastIndexOf('/') + 1)

  /** The folder of the file, named the same way as `path`; empty for the table's own folder. */
  def folder: String = path.lastIndexOf('/') match {
    case -1 => ""
    case slash => path.substring(0, slash)
  }
}
