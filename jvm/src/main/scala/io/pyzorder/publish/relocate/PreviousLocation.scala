package io.pyzorder.publish.relocate

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.slf4j.LoggerFactory

import io.pyzorder.index.collect.RowCounts
import io.pyzorder.storage.{BoundedFileName, CopyFile, CreateIfAbsent, FileRef, FileSystems}
import io.pyzorder.storage.{Links, MetadataFiles, MoveFile, SiblingFolder, TableFolder}

/**
 * A folder from whose files a run fills another one, which the catalog names in its place from then
 * on. Who knew it before may go on writing there.
 *
 * @param table in whose journal the run is
 * @param path  the folder
 * @param read  the files that were read, named as in the table
 * @param marks the folder of ours that tells which of the later files were carried over
 * @param token of the run alone, of which a copy's name is made
 */
private[publish] final class PreviousLocation(
    hadoopConf: Configuration,
    table: TableFolder,
    val path: Path,
    read: Seq[FileRef],
    marks: Path,
    token: String) {

  private val fs: FileSystem = path.getFileSystem(hadoopConf)
  private val known = read.toSet

  /** The data files that any engine sees in it. */
  def visible: Seq[FileStatus] = SiblingFolder.dataFiles(hadoopConf, path)

  /** Files that came after it was read, and were not carried over yet. */
  def late: Seq[FileStatus] = visible.filterNot(status =>
    status.getLen == 0 || known(refOf(status)) || FileSystems.exists(fs, mark(status)) ||
      Links.strange(path, status.getPath))

  /** Whether a file that was read is not in it any more. */
  def incomplete: Boolean = !read.forall(visible.map(refOf).toSet)

  /** The files of the table in it, which others' files may lie beside; for VACUUM. */
  def ownFiles: Seq[FileStatus] = visible.filter { status =>
    known(refOf(status)) || FileSystems.exists(fs, mark(status))
  }

  /**
   * Copies the files of `late`, and notes it. What cannot be read yet is still being written: it
   * stays for the next time. A copy's name is the run's alone, by which it is found again after a
   * kill between copy and note.
   *
   * @param target a folder of the same store; it has, or gets, a `_zorder`
   */
  def carry(target: Path): Unit = late.foreach { status =>
    val (stem, endings) = status.getPath.getName.span(_ != '.')
    val copied = new Path(target, BoundedFileName.of(s"carried-$token-", stem, endings))
    if (FileSystems.exists(fs, copied) || copy(status, copied)) {
      PreviousLocation.log.info(
        s"${status.getPath}, written after $path had been read, was copied into $target")
      MetadataFiles.makeFolder(hadoopConf, marks)
      CreateIfAbsent.of(hadoopConf, mark(status)).create(mark(status), Array.emptyByteArray)
    }
  }

  /** Readers see the copy when it is whole; false: there is none. */
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
          s"${status.getPath} is not copied into ${copied.getParent} yet", failure)
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
