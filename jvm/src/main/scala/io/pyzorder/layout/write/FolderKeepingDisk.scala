package io.pyzorder.layout.write

import java.io.FileNotFoundException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, LocalFileSystem, Path, RawLocalFileSystem}

/**
 * The local disk for writers that must not make the folder of a file: those of Parquet and ORC do,
 * and where the table was dropped meanwhile they would make its folder anew, or make their own in
 * the folder of a new table.
 */
final class FolderKeepingDisk extends LocalFileSystem(new RawLocalFileSystem {
      override def mkdirs(folder: Path): Boolean =
        exists(folder) || { throw new FileNotFoundException(s"$folder does not exist") }
    })

object FolderKeepingDisk {

  private val Key = "fs.file.impl"

  /** Whether a path is on the disk, and no other class than Hadoop's own is to serve that. */
  def serves(path: Path, conf: Configuration): Boolean =
    path.toUri.getScheme == "file" &&
      Option(conf.get(Key)).forall(_ == classOf[LocalFileSystem].getName)

  /** The configuration with which it does. */
  def in(conf: Configuration): Configuration = {
    val own = new Configuration(conf)
    own.setClassLoader(new ClassLoader(conf.getClassLoader) { // codecs may be where pyzorder is not
      override def findClass(name: String): Class[_] =
        if (name == classOf[FolderKeepingDisk].getName) classOf[FolderKeepingDisk]
        else super.findClass(name)
    })
    own.setClass(Key, classOf[FolderKeepingDisk], classOf[FileSystem])
    own.setBoolean(s"$Key.disable.cache", true)
    own
  }
}
