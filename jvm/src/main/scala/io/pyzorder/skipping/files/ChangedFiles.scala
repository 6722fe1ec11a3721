package io.pyzorder.skipping.files

import java.io.IOException

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

/** Asks the store again before an index entry is believed. */
private[skipping] object ChangedFiles {

  /**
   * Those of the files that are not any more as the listing says. Spark keeps listings for as long
   * as a session lasts, and would still read what stands in the file's place.
   */
  def among(conf: Configuration, files: Iterator[FileStatus]): Set[Path] = {
    val folders = files.toSeq.groupBy(_.getPath.getParent).toArray
    java.util.Arrays.stream(folders).parallel().flatMap[Path] { case (folder, listed) =>
      val now = statusNow(conf, folder)
      java.util.Arrays.stream(listed.filterNot { file =>
        now.get(file.getPath.getName).exists(status =>
          status.getLen == file.getLen && status.getModificationTime == file.getModificationTime)
      }.map(_.getPath).toArray)
    }.iterator().asScala.toSet
  }

  /** A folder's files by name, as they are now; empty when it cannot be listed. */
  private def statusNow(conf: Configuration, folder: Path): Map[String, FileStatus] =
    try {
      folder.getFileSystem(conf).listStatus(folder).map(file => file.getPath.getName -> file).toMap
    } catch { case _: IOException => Map.empty }
}
