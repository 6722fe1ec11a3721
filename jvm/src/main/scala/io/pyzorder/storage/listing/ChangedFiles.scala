package io.pyzorder.storage.listing

import java.io.IOException

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.sql.pyzorder.Requests
import org.slf4j.LoggerFactory

import io.pyzorder.storage.{FileSystems, FileVersion, FilesByFolder, LocalDisk, S3Requests}

/** Finds files that have changed in the store since they were listed. */
object ChangedFiles {

  private val log = LoggerFactory.getLogger(getClass)

  /**
   * Returns the paths of the given files that have changed or disappeared since they were listed. A
   * changed file must not be skipped, because Spark keeps a listing for the whole session and reads
   * whatever file has the listed name when the query runs.
   *
   * The modification time of a folder cannot replace this check. On a local disk, it does not
   * change if a file in the folder is overwritten; on S3, there are no folders.
   */
  def among(conf: Configuration, files: Iterator[FileStatus]): Set[Path] =
    onEachStore(conf, files.toSeq) { (fs, listed) =>
      if (LocalDisk.has(fs)) oneByOne(fs, listed)
      else {
        val requests = FilesByFolder(listed).toSeq.flatMap { case (folder, known) =>
          requestsFor(fs, folder, known)
        }
        Requests.inParallel(fs, requests) { request =>
          val now = request.send().map(file => file.getPath.getName -> file).toMap
          request.files.filterNot(file => now.get(file.getPath.getName).exists(isSame(_, file)))
        }.flatten
      }
    }.map(_.getPath).toSet

  /** Calls `check` once for each file system, with the files on it. */
  private def onEachStore(conf: Configuration, files: Seq[FileStatus])(
      check: (FileSystem, Seq[FileStatus]) => Seq[FileStatus]): Seq[FileStatus] =
    files
      .groupBy(file => (file.getPath.toUri.getScheme, file.getPath.toUri.getAuthority)).values
      .flatMap(each => check(each.head.getPath.getFileSystem(conf), each)).toSeq

  /** Requests the status of each file. On a local disk, this is faster than listing folders. */
  private def oneByOne(fs: FileSystem, files: Seq[FileStatus]): Seq[FileStatus] =
    Requests.inParallel(fs, files) { file =>
      val same =
        if (LocalDisk.has(fs)) LocalDisk.version(file.getPath).contains(FileVersion.of(file))
        else FileSystems.status(fs, file.getPath).exists(isSame(_, file))
      if (same) None else Some(file)
    }.flatten

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
      try if (files.length > S3Requests.PageSize) S3Requests.of(fs) else None
      catch { case NonFatal(failure) => notInRanges(folder, failure) }
    // S3 sorts names by their bytes. Java sorts strings in the same order only if they are ASCII.
    if (ranges.isEmpty || !files.forall(_.getPath.getName.forall(_ < 128)))
      Seq(Request(files, () => whole()))
    else {
      val named = files.map(file => file.getPath.getName -> file).sortBy(_._1)
      val parts = named.grouped(S3Requests.RangeSize).toSeq
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
   * Whether any file has changed or disappeared. Requests each file's status instead of listing
   * folders.
   */
  def anyOf(conf: Configuration, files: Seq[FileStatus]): Boolean =
    onEachStore(conf, files)(oneByOne).nonEmpty

  private def isSame(now: FileStatus, known: FileStatus): Boolean =
    now.getLen == known.getLen && now.getModificationTime == known.getModificationTime
}
