package io.pyzorder.storage

import java.io.{BufferedInputStream, FileNotFoundException, IOException}
import java.nio.file.{FileAlreadyExistsException, Files, NoSuchFileException, Paths}
import java.nio.file.StandardCopyOption.ATOMIC_MOVE

import org.apache.commons.io.IOUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{EtagSource, FileStatus, FileSystem, Path}

import io.pyzorder.common.ZOrderErrors

/**
 * Moves one file within a store without ever replacing another, so that it can be looked up under
 * one of its two names at every moment, and repeated after a kill at any moment.
 */
private[pyzorder] object MoveFile {

  sealed trait Result

  /** It is at the new name now, and was moved there. */
  case object Moved extends Result

  /** It is not at the old name, but one is at the new: it was moved before, or never away. */
  case object AlreadyThere extends Result

  /** It is not at the old name (nor was it seen at the new one). */
  case object SourceGone extends Result

  /** Another file has the new name; nothing was done. */
  case object TargetTaken extends Result

  /** The new name's folder is gone; nothing was done. */
  case object FolderGone extends Result

  /** Whether a file has the same modification time after a move: on S3 that is a copy. */
  def keepsTime(fs: FileSystem): Boolean = fs.getUri.getScheme != "s3a"

  def move(hadoopConf: Configuration, from: Path, to: Path): Result = {
    val fs = from.getFileSystem(hadoopConf)
    if (Links.above(to)) throw ZOrderErrors.linked(to.toString)
    if (Links.above(from)) SourceGone
    else if (fs.getUri.getScheme == "file") moveLocal(from, to)
    else moveRemote(fs, from, to)
  }

  /**
   * A link to the new name, then the old one is taken away: unlike rename(2) a link never replaces.
   * Hadoop's own checksum file of a moved file would lie about it: it goes first.
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
      case _: NoSuchFileException =>
        if (Files.exists(source)) FolderGone
        else if (Files.exists(target)) AlreadyThere
        else SourceGone
    }
  }

  /** Where links are not allowed (another user's file, some mounted stores). */
  private def renameLocal(source: java.nio.file.Path, target: java.nio.file.Path): Unit =
    if (Files.exists(target)) throw new FileAlreadyExistsException(target.toString)
    else Files.move(source, target, ATOMIC_MOVE)

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
        // A rename on S3 is a copy and a deletion: killed between them it leaves both.
        if (!keepsTime(fs) && sameBytes(fs, source, target)) {
          fs.delete(from, false)
          Moved
        } else TargetTaken
    }

  /** By their etags, and where these differ, as those of copies may, by what is in them. */
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
