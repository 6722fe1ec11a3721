package io.pyzorder.skipping.files

import java.io.IOException

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

/** Checks the store before an index entry is used. */
private[skipping] object ChangedFiles {

  /**
   * Returns the files that no longer match the listing. Spark keeps a listing for the whole session
   * and would otherwise read whatever has replaced such a file.
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

  /** A folder's current files by name, or an empty map if the folder cannot be listed. */
  private def statusNow(conf: Configuration, folder: Path): Map[String, FileStatus] =
    try {
      folder.getFileSystem(conf).listStatus(folder).map(file => file.getPath.getName -> file).toMap
    } catch { case _: IOException => Map.empty }
}
