package io.pyzorder.storage

import java.io.FileNotFoundException
import java.nio.file.{Files, Paths}
import java.nio.file.attribute.BasicFileAttributes

import scala.util.Try
import scala.util.control.NonFatal

import com.google.common.io.ByteStreams
import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, FileSystem, LocalFileSystem, Path}

/** What Hadoop's file systems leave to the caller: absence is an answer, and not an error. */
object FileSystems {

  /** No file of ours that is read in one piece is longer: records of a million files fit. */
  private[pyzorder] val MaxBytes: Int = 256 << 20

  /**
   * A file of ours. What is none counts as missing: a link, a folder, a pipe, on which a read would
   * wait for ever, or more than `atMost` bytes.
   */
  def readFully(fs: FileSystem, path: Path, atMost: Int = MaxBytes): Array[Byte] = {
    if (Links.inOwn(path)) throw new FileNotFoundException(s"$path is a link")
    val in = open(fs, path)
    try {
      val bytes = ByteStreams.toByteArray(ByteStreams.limit(in, atMost + 1L))
      if (bytes.length > atMost) throw new FileNotFoundException(s"$path is too long to be ours")
      bytes
    } finally in.close()
  }

  /**
   * Opens a file of ours. Hadoop's local file system would hold it against a checksum file beside
   * it; pyzorder makes none, so that one that is there is not its own.
   */
  private[pyzorder] def open(fs: FileSystem, path: Path): FSDataInputStream = {
    if (isSpecial(path)) throw new FileNotFoundException(s"$path is no file")
    withoutChecksums(fs).open(path)
  }

  private[pyzorder] def withoutChecksums(fs: FileSystem): FileSystem = fs match {
    case local: LocalFileSystem => local.getRaw
    case other => other
  }

  /** Whether there is something on a disk that is neither a file nor a folder, such as a pipe. */
  private[pyzorder] def isSpecial(path: Path): Boolean =
    Option(path.toUri.getScheme).forall(_ == "file") &&
      Try(Files.readAttributes(Paths.get(path.toUri.getPath), classOf[BasicFileAttributes]))
        .toOption.exists(_.isOther)

  /** Nothing of a folder of ours that is a link, or lies behind one. */
  private[pyzorder] def list(fs: FileSystem, folder: Path): Seq[FileStatus] =
    if (Links.inOwn(folder)) Nil
    else {
      try fs.listStatus(folder).toSeq
      catch {
        case _: FileNotFoundException => Nil
        case NonFatal(failure) if isNotDirectory(failure) => Nil
      }
    }

  def exists(fs: FileSystem, path: Path): Boolean = status(fs, path).isDefined

  /** A file's status; None: there is none. An unreachable store is an error, not an absence. */
  def status(fs: FileSystem, path: Path): Option[FileStatus] =
    if (Links.inOwn(path)) None
    else
      try Some(fs.getFileStatus(path))
      catch {
        case _: FileNotFoundException => None
        case NonFatal(failure) if isNotDirectory(failure) => None
      }

  private def isNotDirectory(failure: Throwable): Boolean =
    failure.isInstanceOf[org.apache.hadoop.fs.ParentNotDirectoryException] ||
      String.valueOf(failure.getMessage).contains("Not a directory")
}
