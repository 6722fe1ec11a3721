package io.pyzorder.storage

import java.io.IOException

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.sql.pyzorder.Requests
import org.slf4j.LoggerFactory

/** Finds files that have changed in the store since they were listed. */
object ChangedFiles {

  private val log = LoggerFactory.getLogger(getClass)

  /**
   * Returns the paths of the given files that have changed or disappeared since they were listed. A
   * changed file must not be skipped, because Spark keeps a listing for the whole session and reads
   * whatever file has the listed name when the query runs.
   */
  def among(conf: Configuration, files: Iterator[FileStatus]): Set[Path] =
    onEachStore(conf, files.toSeq) { (fs, folders) =>
      val requests = folders.flatMap { case (folder, listed) => requestsFor(fs, folder, listed) }
      Requests.inParallel(fs, requests) { request =>
        val now = request.send().map(file => file.getPath.getName -> file).toMap
        request.files.filterNot(file => now.get(file.getPath.getName).exists(isSame(_, file)))
      }.flatten
    }.map(_.getPath).toSet

  /** Groups the files on each file system by folder and calls `check` once for each file system. */
  private def onEachStore[T](conf: Configuration, files: Seq[FileStatus])(
      check: (FileSystem, Seq[(Path, Seq[FileStatus])]) => Seq[T]): Seq[T] =
    files.groupBy(_.getPath.getParent).toSeq
      .groupBy { case (folder, _) => (folder.toUri.getScheme, folder.toUri.getAuthority) }.values
      .flatMap(folders => check(folders.head._1.getFileSystem(conf), folders)).toSeq

  /**
   * A request to the store.
   *
   * @param files the files whose current state the response contains, if they still exist
   */
  private final case class Request(files: Seq[FileStatus], send: () => Seq[FileStatus])

  /**
   * The requests that list a folder. If the folder is on S3 and many of its files are to be
   * checked, there is one request per range of names. Otherwise, there is a single request.
   */
  private def requestsFor(fs: FileSystem, folder: Path, files: Seq[FileStatus]): Seq[Request] = {
    def whole(): Seq[FileStatus] =
      try fs.listStatus(folder).toSeq
      catch { case _: IOException => Nil }
    val ranges =
      try if (files.length > S3Listing.PageSize) S3Listing.of(fs) else None
      catch { case NonFatal(failure) => notInRanges(folder, failure) }
    val named = files.map(file => file.getPath.getName -> file).sortBy(_._1)
    // S3 sorts names by their bytes. Java sorts strings in the same order only if they are ASCII.
    if (ranges.isEmpty || !named.forall(_._1.forall(_ < 128))) Seq(Request(files, () => whole()))
    else {
      val parts = named.grouped(RangeSize).toSeq
      val starts = "" +: parts.map(_.last._1)
      parts.zip(starts).map { case (part, after) =>
        def range(): Seq[FileStatus] =
          try ranges.get.range(folder, after, part.last._1)
          catch {
            case NonFatal(failure) =>
              notInRanges(folder, failure)
              whole()
          }
        Request(part.map(_._2), () => range())
      }
    }
  }

  private def notInRanges(folder: Path, failure: Throwable): None.type = {
    log.info(s"$folder is listed page by page, not in ranges: $failure")
    None
  }

  /**
   * The number of known files in a range. It is less than the size of a page, to leave room on the
   * page for some new files.
   */
  private val RangeSize = S3Listing.PageSize * 9 / 10

  /**
   * Whether any file has changed or disappeared. Requests each file's status instead of listing
   * folders.
   */
  def anyOf(conf: Configuration, files: Seq[FileStatus]): Boolean =
    onEachStore(conf, files) { (fs, folders) =>
      Requests.inParallel(fs, folders.flatMap(_._2)) { file =>
        !FileSystems.status(fs, file.getPath).exists(isSame(_, file))
      }
    }.contains(true)

  private def isSame(now: FileStatus, known: FileStatus): Boolean =
    now.getLen == known.getLen && now.getModificationTime == known.getModificationTime
}
