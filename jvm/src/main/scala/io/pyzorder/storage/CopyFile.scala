package io.pyzorder.storage

import java.io.FileNotFoundException
import java.nio.file.{Files, Paths}
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileUtil, Path}

/** Copies whole files to paths below `_zorder`. */
private[pyzorder] object CopyFile {

  /**
   * Copies a file to `to`. On a local disk, an existing file at `to` is replaced rather than
   * written to, because anyone with write access to the table's folder can predict the name and
   * create a symbolic or hard link to another user's file there. For the same reason, the checksum
   * file of `to` is deleted.
   */
  def copy(hadoopConf: Configuration, from: Path, to: Path): Unit = {
    val (source, target) = (from.getFileSystem(hadoopConf), to.getFileSystem(hadoopConf))
    // When the source file system opens a file, it also opens the file's checksum file. If the
    // checksum file were a pipe, opening it would block. If it were a link, it could lead to
    // another user's file.
    val checksum = FileSystems.checksumFile(from)
    if (FileSystems.isSpecial(checksum) || Links.isOne(checksum))
      throw new FileNotFoundException(s"$checksum is not a file")
    if (target.getUri.getScheme != "file") {
      FileUtil.copy(source, from, target, to, false, true, hadoopConf)
    } else {
      val local = Paths.get(to.toUri.getPath)
      val made = local.resolveSibling(CreateIfAbsent.Temporary + UUID.randomUUID())
      try {
        val in = source.open(from)
        try Files.copy(in, made)
        finally in.close()
        MoveFile.removeChecksum(local)
        Files.move(made, local, ATOMIC_MOVE)
      } finally Files.deleteIfExists(made)
    }
  }
}
