package io.pyzorder.write

import org.apache.hadoop.fs.{FileStatus, Path}

/**
 * A folder in which a write has added or replaced files.
 *
 * @param path    the folder's path; None if it is not known
 * @param present the data files in it after the write, keyed by name
 * @param written the files that this write has added
 */
private[write] final case class WrittenFolder(
    path: Option[Path],
    present: Map[String, FileStatus],
    written: Seq[NewFile]) {

  /** The folder's other data files, which this write has not added. */
  def others: Iterable[FileStatus] = (present -- written.map(_.name)).values

  /** The files of this write that are in the folder, each with its current status. */
  def placed: Seq[(NewFile, FileStatus)] =
    written.flatMap(file => present.get(file.name).map(file -> _))
}
