package io.pyzorder.publish.relocate

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.sql.pyzorder.shim
import org.slf4j.LoggerFactory

import io.pyzorder.index.collect.RowCounts
import io.pyzorder.index.store.IndexPublisher
import io.pyzorder.storage.{BoundedFileName, CopyFile, CreateIfAbsent, FileRef, FileSystems}
import io.pyzorder.storage.{Links, MetadataFiles, MoveFile, SiblingFolder, TableFolder}

/**
 * A folder that a run replaced with another folder in the catalog. Commands that were planned
 * before the switch may still write to the old folder.
 *
 * @param table the table whose journal contains the run
 * @param path  the replaced folder
 * @param read  the files that the run read from the folder, with names relative to `table`
 * @param marks the folder for marks. It contains one mark for each file that was added later and
 *              has been copied to the new folder
 * @param token a string that is unique to the run, used in the names of copies
 */
private[publish] final class PreviousLocation(
    session: shim.SparkSession,
    table: TableFolder,
    val path: Path,
    read: Seq[FileRef],
    marks: Path,
    token: String) {

  private val hadoopConf = session.sessionState.newHadoopConf()
  private val fs: FileSystem = path.getFileSystem(hadoopConf)
  private val known = read.toSet

  /** The files that an engine treats as data when it reads the folder. */
  def visible: Seq[FileStatus] = SiblingFolder.dataFiles(hadoopConf, path)

  /**
   * Files that were added after the folder was read and have not been copied yet. Ignores empty
   * files and the links that Links.strange rejects.
   */
  def late: Seq[FileStatus] = visible.filterNot(status =>
    status.getLen == 0 || known(refOf(status)) || FileSystems.exists(fs, mark(status)) ||
      Links.strange(path, status.getPath))

  /** Whether a file that the run read is no longer in the folder. */
  def incomplete: Boolean = !read.forall(visible.map(refOf).toSet)

  /**
   * The files in the folder that belong to the table and that VACUUM may delete. The folder may
   * also contain other files.
   */
  def ownFiles: Seq[FileStatus] = visible.filter { status =>
    known(refOf(status)) || FileSystems.exists(fs, mark(status))
  }

  /**
   * Copies the files in `late` to `target` and marks them as copied. A file that cannot be read yet
   * may be incomplete and is left for the next call. The name of a copy is derived from the token
   * and the file's name. If the process is killed before it marks the file, the next call therefore
   * finds the copy and only marks the file.
   *
   * @param target a folder on the same store. A `_zorder` is created in it if there is none
   * @param now    the table to which the copied rows belong
   */
  def carry(target: Path, now: TableFolder): Unit = {
    val files = late
    files.foreach(carry(_, target))
    if (files.nonEmpty) IndexPublisher.uncover(session, now)
  }

  private def carry(status: FileStatus, target: Path): Unit = {
    val (stem, endings) = status.getPath.getName.span(_ != '.')
    val copied = new Path(target, BoundedFileName.of(s"carried-$token-", stem, endings))
    if (FileSystems.exists(fs, copied) || copy(status, copied)) {
      PreviousLocation.log.info(
        s"${status.getPath} was written after $path had been read, and was copied into $target")
      MetadataFiles.makeFolder(hadoopConf, marks)
      CreateIfAbsent.of(hadoopConf, mark(status)).create(mark(status), Array.emptyByteArray)
    }
  }

  /**
   * Copies a file so that readers never see a partial copy. Returns false if the file could not be
   * copied.
   */
  private def copy(status: FileStatus, copied: Path): Boolean = {
    val staged = new Path(
      new TableFolder(copied.getParent).zorder,
      "_carried/" + BoundedFileName.of("_", copied.getName, ".staged"))
    try {
      MetadataFiles.makeFolder(hadoopConf, staged.getParent)
      CopyFile.copy(hadoopConf, status.getPath, staged)
      RowCounts.of(hadoopConf, staged)
      val same = FileSystems.status(fs, status.getPath).map(refOf).contains(refOf(status))
      same && MoveFile.move(hadoopConf, staged, copied) == MoveFile.Moved
    } catch {
      case NonFatal(failure) =>
        PreviousLocation.log.warn(
          s"${status.getPath} could not be copied into ${copied.getParent}, and is left for the " +
            "next attempt",
          failure)
        false
    } finally {
      fs.delete(staged, false)
    }
  }

  private def mark(status: FileStatus): Path =
    new Path(marks, BoundedFileName.of("_", status.getPath.getName, ".carried"))

  private def refOf(status: FileStatus): FileRef =
    FileRef(table.relativize(status.getPath), status.getLen, status.getModificationTime)
}

private object PreviousLocation {
  private val log = LoggerFactory.getLogger(classOf[PreviousLocation])
}
