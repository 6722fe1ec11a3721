package io.pyzorder.skipping.files

import java.io.IOException

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

import io.pyzorder.storage.FileSystems

/** Checks the store before an index entry is used. */
private[skipping] object ChangedFiles {

  /**
   * Returns the files that no longer match the listing. Spark keeps a listing for the whole session
   * and reads whatever has replaced such a file, so the file must not be skipped.
   */
  def among(conf: Configuration, files: Iterator[FileStatus]): Set[Path] = {
    val folders = files.toSeq.groupBy(_.getPath.getParent).toArray
    java.util.Arrays.stream(folders).parallel().flatMap[Path] { case (folder, listed) =>
      val now = statusNow(conf, folder)
      java.util.Arrays.stream(listed.filterNot { file =>
        now.get(file.getPath.getName).exists(isSame(_, file))
      }.map(_.getPath).toArray)
    }.iterator().asScala.toSet
  }

  /** Whether any of the files has changed. Requests the status of each file and lists nothing. */
  def anyOf(conf: Configuration, files: Seq[FileStatus]): Boolean =
    java.util.Arrays.stream(files.toArray).parallel().anyMatch { file =>
      val fs = file.getPath.getFileSystem(conf)
      !FileSystems.status(fs, file.getPath).exists(isSame(_, file))
    }

  private def isSame(now: FileStatus, known: FileStatus): Boolean =
    now.getLen == known.getLen && now.getModificationTime == known.getModificationTime

  /** A folder's current files by name, or an empty map if the folder cannot be listed. */
  private def statusNow(conf: Configuration, folder: Path): Map[String, FileStatus] =
    try {
      folder.getFileSystem(conf).listStatus(folder).map(file => file.getPath.getName -> file).toMap
    } catch { case _: IOException => Map.empty }
}
