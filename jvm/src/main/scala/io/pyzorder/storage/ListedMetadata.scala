package io.pyzorder.storage

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.slf4j.LoggerFactory

/**
 * The files in a table's `_journal` and `_index` folders. Each folder is listed when its files are
 * first requested. On S3, one request lists both folders, whether or not they exist.
 */
final class ListedMetadata private (
    val folder: TableFolder,
    lookUp: => Boolean,
    listed: Path => Seq[FileStatus]) {

  /** Whether the table may have a journal or an index. */
  lazy val exists: Boolean = lookUp

  lazy val journal: Seq[FileStatus] = listed(folder.journal)

  lazy val index: Seq[FileStatus] = listed(folder.index)
}

object ListedMetadata {

  private val log = LoggerFactory.getLogger(getClass)

  def of(hadoopConf: Configuration, folder: TableFolder): ListedMetadata = {
    val fs = folder.zorder.getFileSystem(hadoopConf)
    onS3(fs, folder) match {
      case Some(files) =>
        new ListedMetadata(
          folder, files.nonEmpty, path => files.filter(_.getPath.getParent == path))
      case None =>
        new ListedMetadata(
          folder, FileSystems.exists(fs, folder.zorder), FileSystems.list(fs, _))
    }
  }

  /** Enough for most tables. A page also contains some of the other files in `_zorder`. */
  private val PageSize = 200

  /** The files below both folders; None if S3A must list each of them. */
  private def onS3(fs: FileSystem, folder: TableFolder): Option[Seq[FileStatus]] =
    try {
      val names = Seq(folder.index, folder.journal).map(_.getName).sorted
      S3Listing.of(fs).map(_.rangeBelow(folder.zorder, names.head, s"${names.last}/\uffff",
          PageSize))
    } catch {
      case NonFatal(failure) =>
        log.info(s"The folders in ${folder.zorder} are listed one by one: $failure")
        None
    }
}
