package io.pyzorder.storage.listing

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.sql.pyzorder.Requests
import org.slf4j.LoggerFactory

import io.pyzorder.storage.{Links, LocalDisk, S3Requests, TableFolder}

/**
 * Lists folders that contain many files faster than Hadoop does. On a local disk, Hadoop sends the
 * operating system several requests per file. On S3, it requests one page after another.
 */
object FolderListing {

  private val log = LoggerFactory.getLogger(getClass)

  /**
   * The files in a folder that Spark's listings show. None if there is no faster way to list the
   * folder, or if the folder has subfolders that Spark would list, too.
   *
   * @param folder a fully qualified path
   * @param known  the names of files that are probably in the folder. Evaluated only on S3, where
   *               the names divide the folder into ranges that are listed in parallel
   */
  def apply(fs: FileSystem, folder: Path, known: => Seq[String]): Option[Seq[FileStatus]] =
    try
      if (Links.inOwn(folder)) None
      else if (LocalDisk.has(fs)) onLocalDisk(fs, folder)
      else S3Requests.of(fs).flatMap(inRanges(_, folder, known))
    catch {
      case NonFatal(failure) =>
        log.debug(s"$folder is listed by Hadoop", failure)
        None
    }

  private def onLocalDisk(fs: FileSystem, folder: Path): Option[Seq[FileStatus]] = {
    val blockSize = fs.getDefaultBlockSize(folder)
    LocalDisk.files(folder, isShown).map(_.map(file =>
        new FileStatus(file.size, false, 1, blockSize, file.modificationTime, file.path)))
  }

  /**
   * Every name is in one of the ranges, because the first one has no start and the last one no end.
   */
  private def inRanges(
      requests: S3Requests,
      folder: Path,
      known: Seq[String]): Option[Seq[FileStatus]] = {
    // S3 sorts names by their bytes. Java sorts strings in the same order only if they are ASCII.
    val ends = known.filter(_.forall(_ < 128)).distinct.sorted
      .grouped(S3Requests.RangeSize).map(_.last).toVector.dropRight(1)
    val ranges = ("" +: ends).zip(ends :+ "")
    if (ends.isEmpty) None
    else {
      val listed = Requests.inParallel(requests.fs, ranges) { case (after, last) =>
        requests.entries(folder, after, last)
      }
      if (listed.exists(_.folders.exists(isShown))) None
      else {
        // The last page of a range may reach into the next range.
        val files = listed.flatMap(_.files).filter(file => isShown(file.getPath.getName))
        Some(files.map(file => file.getPath -> file).toMap.values.toVector.sortBy(_.getPath))
      }
    }
  }

  /** Spark also shows files whose names start like those of Parquet's summary files. */
  private def isShown(name: String): Boolean =
    !TableFolder.isHiddenName(name) || Seq("_metadata", "_common_metadata").exists(name.startsWith)
}
