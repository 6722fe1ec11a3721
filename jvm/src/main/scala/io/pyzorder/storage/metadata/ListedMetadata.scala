package io.pyzorder.storage.metadata

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.slf4j.LoggerFactory

import io.pyzorder.storage.{FileSystems, S3Requests, TableFolder}

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

  def of(hadoopConf: Configuration, folder: TableFolder): ListedMetadata =
    found(hadoopConf, folder)(NewestMetadata.listed(_, folder))

  /**
   * Like `of`, but on S3, the result may contain only the newest pointer and the records of the
   * last run. They are usually known without a listing (see NewestMetadata), however many runs
   * there were.
   */
  def newest(hadoopConf: Configuration, folder: TableFolder): ListedMetadata =
    found(hadoopConf, folder)(requests =>
      NewestMetadata.known(requests, folder)
        .fold(NewestMetadata.listed(requests, folder))(_.files))

  private def found(hadoopConf: Configuration, folder: TableFolder)(
      find: S3Requests => Seq[FileStatus]): ListedMetadata = {
    val fs = folder.zorder.getFileSystem(hadoopConf)
    onS3(fs, folder)(find) match {
      case Some(files) =>
        new ListedMetadata(
          folder, files.nonEmpty, path => files.filter(_.getPath.getParent == path))
      case None =>
        new ListedMetadata(
          folder, FileSystems.exists(fs, folder.zorder), FileSystems.list(fs, _))
    }
  }

  /** The files in both folders; None if the store is not S3 or S3A must list each folder. */
  private def onS3(fs: FileSystem, folder: TableFolder)(
      find: S3Requests => Seq[FileStatus]): Option[Seq[FileStatus]] =
    try S3Requests.of(fs).map(find)
    catch {
      case NonFatal(failure) =>
        log.info(s"The folders in ${folder.zorder} are listed one by one: $failure")
        None
    }
}
