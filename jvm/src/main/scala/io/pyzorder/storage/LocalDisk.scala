package io.pyzorder.storage

import java.io.IOException
import java.nio.file.{Files, InvalidPathException, LinkOption, Paths}
import java.nio.file.attribute.BasicFileAttributes

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.fs.{FileSystem, Path}

/** Looks up files on a local disk. Hadoop sends the operating system several requests per file. */
private[pyzorder] object LocalDisk {

  /** Hadoop's own file systems for local disks, and the one that Hive registers in its place. */
  private val Own = Set(
    "org.apache.hadoop.fs.LocalFileSystem",
    "org.apache.hadoop.fs.RawLocalFileSystem",
    "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem")

  /** Whether the file system reads files directly from a local disk. */
  def has(fs: FileSystem): Boolean =
    Own(fs.getClass.getName) && Own(FileSystems.withoutChecksums(fs).getClass.getName)

  /**
   * The file's current version, in the same units as Hadoop's. Returns None if there is no such
   * file, or if its path contains a link at or below `_zorder`.
   */
  def version(path: Path): Option[FileVersion] =
    if (Links.inOwn(path)) None
    else
      try {
        val now =
          Files.readAttributes(Paths.get(path.toUri.getPath), classOf[BasicFileAttributes])
        if (now.isDirectory) None
        else Some(FileVersion(path, now.size, now.lastModifiedTime.toMillis))
      } catch { case _: IOException | _: InvalidPathException => None }

  /**
   * The version of each entry of a folder whose name `shows` accepts, sorted by name. None if one
   * of them is not a file. Links do not count as files.
   */
  private[storage] def files(folder: Path, shows: String => Boolean): Option[Seq[FileVersion]] = {
    val root = Paths.get(folder.toUri.getPath)
    val names = Using.resource(Files.newDirectoryStream(root))(
      _.iterator.asScala.map(_.getFileName.toString).filter(shows).toArray)
    java.util.Arrays.sort(names.asInstanceOf[Array[AnyRef]])
    val found = names.iterator.map { name =>
      val now = Files.readAttributes(
        root.resolve(name), classOf[BasicFileAttributes], LinkOption.NOFOLLOW_LINKS)
      if (!now.isRegularFile) None
      else
        Some(FileVersion(
            TableFolder.below(folder, name), now.size, now.lastModifiedTime.toMillis))
    }.takeWhile(_.isDefined).flatten.toVector
    if (found.length == names.length) Some(found) else None
  }
}
