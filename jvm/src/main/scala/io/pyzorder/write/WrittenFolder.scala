package io.pyzorder.write

import org.apache.hadoop.fs.{FileStatus, Path}

/**
 * A folder that a write has put files into, or replaced the files of.
 *
 * @param path    None: it cannot be told
 * @param lie     the data files in it after the write, by name
 * @param written by this write
 */
private[write] final case class WrittenFolder(
    path: Option[Path],
    lie: Map[String, FileStatus],
    written: Seq[NewFile]) {

  /** The files in it that are not of this write. */
  def others: Iterable[FileStatus] = (lie -- written.map(_.name)).values

  /** The written files as they lie. */
  def placed: Seq[(NewFile, FileStatus)] =
    written.flatMap(file => lie.get(file.name).map(file -> _))
}
