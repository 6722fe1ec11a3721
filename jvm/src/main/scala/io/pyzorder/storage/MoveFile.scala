package io.pyzorder.storage

import java.io.{BufferedInputStream, FileNotFoundException, IOException}
import java.nio.file.{FileAlreadyExistsException, Files, NoSuchFileException, Paths}
import java.nio.file.StandardCopyOption.ATOMIC_MOVE

import org.apache.commons.io.IOUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{EtagSource, FileStatus, FileSystem, Path}

import io.pyzorder.common.ZOrderErrors

/**
 * Moves one file within a store without replacing another file. At every moment, the file exists
 * under at least one of its two names, and a move that was interrupted at any point can be
 * repeated.
 */
private[pyzorder] object MoveFile {

  sealed trait Result

  /** The file was moved to the new name. */
  case object Moved extends Result

  /**
   * Only the new name exists: either an earlier attempt moved the file, or the file has always had
   * this name.
   */
  case object AlreadyThere extends Result

  /** The file exists under neither the old name nor the new one. */
  case object SourceGone extends Result

  /** Another file already has the new name; nothing was moved. */
  case object TargetTaken extends Result

  /** The folder for the new name does not exist; nothing was moved. */
  case object FolderGone extends Result

  /**
   * Whether a move preserves the modification time. A move on S3 does not, because it creates a
   * copy.
   */
  def keepsTime(fs: FileSystem): Boolean = fs.getUri.getScheme != "s3a"

  def move(hadoopConf: Configuration, from: Path, to: Path): Result = {
    val fs = from.getFileSystem(hadoopConf)
    if (Links.above(to)) throw ZOrderErrors.linked(to.toString)
    if (Links.above(from)) SourceGone
    else if (fs.getUri.getScheme == "file") moveLocal(from, to)
    else moveRemote(fs, from, to)
  }

  /**
   * Creates a hard link with the new name, then deletes the old name. Unlike rename(2), link(2)
   * never replaces a file. Hadoop's checksum file for the old name is deleted first, because it
   * would not match a later file with that name.
   */
  private def moveLocal(from: Path, to: Path): Result = {
    val source = Paths.get(from.toUri.getPath)
    val target = Paths.get(to.toUri.getPath)
    try {
      removeChecksum(source)
      try Files.createLink(target, source)
      catch {
        case failure: FileAlreadyExistsException => throw failure
        case failure: NoSuchFileException => throw failure
        case _: UnsupportedOperationException | _: java.nio.file.FileSystemException =>
          renameLocal(source, target)
      }
      Files.deleteIfExists(source)
      Moved
    } catch {
      case _: FileAlreadyExistsException =>
        if (!Files.exists(source)) AlreadyThere
        else if (Files.isSameFile(source, target)) {
          Files.deleteIfExists(source)
          Moved
        } else TargetTaken
      case failure: java.nio.file.FileSystemException if isGone(failure) =>
        if (Files.exists(source)) FolderGone
        else if (Files.exists(target)) AlreadyThere
        else SourceGone
    }
  }

  /**
   * Renames a file for which a hard link cannot be created. Hard links may be forbidden for files
   * that belong to another user, and some mounted stores do not support them. The rename is not
   * atomic: if another process creates a file at `target` after the check, that file is replaced.
   */
  private def renameLocal(source: java.nio.file.Path, target: java.nio.file.Path): Unit =
    if (Files.exists(target)) throw new FileAlreadyExistsException(target.toString)
    else Files.move(source, target, ATOMIC_MOVE)

  /** Whether the failure says that a file or folder does not exist, or that a folder is a file. */
  private def isGone(failure: java.nio.file.FileSystemException): Boolean =
    failure.isInstanceOf[NoSuchFileException] || FileSystems.isNotDirectory(failure)

  private[storage] def removeChecksum(file: java.nio.file.Path): Unit = {
    val name = file.getFileName.toString
    if (BoundedFileName.fits(name)) Files.deleteIfExists(file.resolveSibling(s".$name.crc"))
  }

  private def moveRemote(fs: FileSystem, from: Path, to: Path): Result = {
    val renamed =
      try fs.rename(from, to)
      catch {
        case _: FileNotFoundException => false
        case _: org.apache.hadoop.fs.FileAlreadyExistsException => false
      }
    if (renamed) Moved else explain(fs, from, to)
  }

  private def explain(fs: FileSystem, from: Path, to: Path): Result =
    (FileSystems.status(fs, from), FileSystems.status(fs, to)) match {
      case (None, Some(_)) => AlreadyThere
      case (None, None) => SourceGone
      case (Some(_), None) if FileSystems.exists(fs, to.getParent) =>
        throw new IOException(s"$from could not be renamed to $to")
      case (Some(_), None) => FolderGone
      case (Some(source), Some(target)) =>
        // A rename on S3 is a copy followed by a delete. If the process is killed in between, both
        // files remain.
        if (!keepsTime(fs) && sameBytes(fs, source, target)) {
          fs.delete(from, false)
          Moved
        } else TargetTaken
    }

  /**
   * Compares sizes and etags. If the etags differ, compares contents, because a copy may have a
   * different etag.
   */
  private def sameBytes(fs: FileSystem, one: FileStatus, other: FileStatus): Boolean =
    one.getLen == other.getLen && (etag(one).exists(etag(other).contains) || {
      val in = new BufferedInputStream(fs.open(one.getPath), BufferSize)
      try {
        val against = new BufferedInputStream(fs.open(other.getPath), BufferSize)
        try IOUtils.contentEquals(in, against)
        finally against.close()
      } finally in.close()
    })

  private def etag(file: FileStatus): Option[String] = file match {
    case source: EtagSource => Option(source.getEtag).filter(_.nonEmpty)
    case _ => None
  }

  private val BufferSize = 1 << 20
}
