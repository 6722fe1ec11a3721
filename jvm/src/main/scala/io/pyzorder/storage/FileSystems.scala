package io.pyzorder.storage

import java.io.FileNotFoundException

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

/** What Hadoop's file systems leave to the caller: absence is an answer, and not an error. */
object FileSystems {

  def readFully(fs: FileSystem, path: Path): Array[Byte] = {
    if (Links.inOwn(path)) throw new FileNotFoundException(s"$path is a link")
    val in = fs.open(path)
    try {
      val out = new java.io.ByteArrayOutputStream()
      org.apache.hadoop.io.IOUtils.copyBytes(in, out, 8192, false)
      out.toByteArray
    } finally in.close()
  }

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
