package io.pyzorder.storage

/**
 * One data file as it was seen: the file under that name is the same one while both numbers agree.
 *
 * @param path             TableFolder.relativize of it
 * @param size             bytes
 * @param modificationTime milliseconds since the epoch, as the file system tells it
 */
final case class FileRef(path: String, size: Long, modificationTime: Long) {

  /** The folder that holds the file, named as the file is; empty: the table's own. */
  def name: String = path.substring(path.lastIndexOf('/') + 1)

  def folder: String = path.lastIndexOf('/') match {
    case -1 => ""
    case slash => path.substring(0, slash)
  }
}
