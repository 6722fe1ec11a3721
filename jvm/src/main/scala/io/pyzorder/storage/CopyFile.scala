package io.pyzorder.storage

import java.nio.file.{Files, Paths}
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileUtil, Path}

/** Copies whole files to names below `_zorder`. */
private[pyzorder] object CopyFile {

  /**
   * Copies a file; what has the new name is replaced. On a disk it is never written to: whoever may
   * write into the table's folder can foresee the name, and have put a link there, symbolic or
   * hard, to somebody's file. Nor is a checksum file, which could be a link as well.
   */
  def copy(hadoopConf: Configuration, from: Path, to: Path): Unit = {
    val (source, target) = (from.getFileSystem(hadoopConf), to.getFileSystem(hadoopConf))
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
