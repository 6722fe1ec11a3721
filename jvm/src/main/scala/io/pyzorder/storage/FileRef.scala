package io.pyzorder.storage

/**
 * One data file as it was at some point in time. The file at this path counts as unchanged as long
 * as its size and modification time equal the values recorded here.
 *
 * @param path             the file's name as returned by TableFolder.relativize
 * @param size             the size in bytes
 * @param modificationTime the modification time in milliseconds since the epoch, as reported by the
 *                         file system
 */
final case class FileRef(path: String, size: Long, modificationTime: Long) {

  def name: String = path.substring(path.lastIndexOf('/') + 1)

  /** The file's folder, in the same form as `path`; empty if it is the table's folder itself. */
  def folder: String = path.lastIndexOf('/') match {
    case -1 => ""
    case slash => path.substring(0, slash)
  }
}
