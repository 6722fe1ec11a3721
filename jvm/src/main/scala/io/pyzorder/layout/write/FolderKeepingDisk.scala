package io.pyzorder.layout.write

import java.io.FileNotFoundException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, LocalFileSystem, Path, RawLocalFileSystem}

/**
 * A local file system that does not create folders. Parquet and ORC writers create the parent
 * folder of a file that they open. If the table has been dropped in the meantime, they would
 * recreate its folder. If a new table with the same name already exists, they would create the
 * dropped table's staging folder in the new table.
 */
final class FolderKeepingDisk extends LocalFileSystem(new RawLocalFileSystem {
      override def mkdirs(folder: Path): Boolean =
        exists(folder) || { throw new FileNotFoundException(s"$folder does not exist") }
    })

object FolderKeepingDisk {

  private val Key = "fs.file.impl"

  /** Whether a path is on the local disk and `conf` uses Hadoop's own class for the local disk. */
  def serves(path: Path, conf: Configuration): Boolean =
    path.toUri.getScheme == "file" &&
      Option(conf.get(Key)).forall(_ == classOf[LocalFileSystem].getName)

  /** A copy of `conf` that makes Hadoop use this file system for local files. */
  def in(conf: Configuration): Configuration = {
    val own = new Configuration(conf)
    // The class loader of `conf` finds codecs, but might not find pyzorder's classes.
    own.setClassLoader(new ClassLoader(conf.getClassLoader) {
      override def findClass(name: String): Class[_] =
        if (name == classOf[FolderKeepingDisk].getName) classOf[FolderKeepingDisk]
        else super.findClass(name)
    })
    own.setClass(Key, classOf[FolderKeepingDisk], classOf[FileSystem])
    own.setBoolean(s"$Key.disable.cache", true)
    own
  }
}
