package io.pyzorder.storage

import java.io.FileNotFoundException
import java.nio.file.{Files, Paths}
import java.nio.file.attribute.BasicFileAttributes

import scala.util.Try
import scala.util.control.NonFatal

import com.google.common.io.ByteStreams
import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, FileSystem, LocalFileSystem, Path}

/** Reads, lists and looks up files. Does not follow links at or below `_zorder`. */
object FileSystems {

  /**
   * The maximum size of one of pyzorder's own files, in bytes. This is enough for a record that
   * names a million files.
   */
  private[pyzorder] val MaxBytes: Int = 256 << 20

  /**
   * Reads one of pyzorder's own files. If the path leads to something that cannot be such a file,
   * the file counts as missing. This applies to links, folders, pipes (from which a read would
   * block forever), and files of more than `atMost` bytes.
   */
  def readFully(fs: FileSystem, path: Path, atMost: Int = MaxBytes): Array[Byte] = {
    if (Links.inOwn(path)) throw new FileNotFoundException(s"$path is a symbolic link")
    val in = open(fs, path)
    try {
      val bytes = ByteStreams.toByteArray(ByteStreams.limit(in, atMost + 1L))
      if (bytes.length > atMost)
        throw new FileNotFoundException(s"$path is too large to be a pyzorder file")
      bytes
    } finally in.close()
  }

  /**
   * Opens one of pyzorder's own files. Hadoop's local file system would verify the file against a
   * checksum file next to it. This method does not, because pyzorder does not write checksum files:
   * any existing checksum file was created by another program.
   */
  private[pyzorder] def open(fs: FileSystem, path: Path): FSDataInputStream = {
    if (isSpecial(path)) throw new FileNotFoundException(s"$path is not a file")
    withoutChecksums(fs).open(path)
  }

  private[pyzorder] def withoutChecksums(fs: FileSystem): FileSystem = fs match {
    case local: LocalFileSystem => local.getRaw
    case other => other
  }

  /**
   * Whether the path is on a local disk and leads to something other than a file or a folder, such
   * as a pipe.
   */
  private[pyzorder] def isSpecial(path: Path): Boolean =
    Option(path.toUri.getScheme).forall(_.equalsIgnoreCase("file")) &&
      Try(Files.readAttributes(Paths.get(path.toUri.getPath), classOf[BasicFileAttributes]))
        .toOption.exists(_.isOther)

  /** The checksum file against which Hadoop's local file system would verify the file at `path`. */
  private[pyzorder] def checksumFile(path: Path): Path =
    new Path(path.getParent, s".${path.getName}.crc")

  /**
   * Lists a folder. The result is empty if the folder does not exist, or if the folder's path
   * contains a link at or below `_zorder`.
   */
  private[pyzorder] def list(fs: FileSystem, folder: Path): Seq[FileStatus] =
    if (Links.inOwn(folder)) Nil else listStatus(fs, folder)

  private def listStatus(fs: FileSystem, folder: Path): Seq[FileStatus] =
    try fs.listStatus(folder).toSeq
    catch {
      case _: FileNotFoundException => Nil
      case NonFatal(failure) if isNotDirectory(failure) => Nil
    }

  /**
   * The files at any depth below a folder, except those reached through links. An attacker can nest
   * folders thousands of levels deep, so this method does not recurse, and it checks each folder
   * only once.
   */
  private[pyzorder] def filesBelow(fs: FileSystem, folder: Path): Seq[FileStatus] = {
    val files = Seq.newBuilder[FileStatus]
    var folders = if (Links.inOwn(folder)) Nil else List(folder)
    while (folders.nonEmpty) {
      val (inner, found) = listStatus(fs, folders.head).partition(_.isDirectory)
      files ++= found
      folders = inner.map(_.getPath).filterNot(Links.isOne).toList ::: folders.tail
    }
    files.result()
  }

  def exists(fs: FileSystem, path: Path): Boolean = status(fs, path).isDefined

  /**
   * A file's status; None if the file does not exist, or if its path contains a link at or below
   * `_zorder`. Throws if the store cannot be reached.
   */
  def status(fs: FileSystem, path: Path): Option[FileStatus] =
    if (Links.inOwn(path)) None
    else
      try Some(fs.getFileStatus(path))
      catch {
        case _: FileNotFoundException => None
        case NonFatal(failure) if isNotDirectory(failure) => None
      }

  private[storage] def isNotDirectory(failure: Throwable): Boolean =
    failure.isInstanceOf[org.apache.hadoop.fs.ParentNotDirectoryException] ||
      String.valueOf(failure.getMessage).contains("Not a directory")
}
