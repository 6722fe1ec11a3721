package io.pyzorder.index.store

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.{CRC32, CheckedInputStream}

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileSystem, Path}

import io.pyzorder.storage.FileSystems

/** Reads and writes whole files in an index. */
private[index] object SnapshotFiles {

  /** The maximum size of a pointer in bytes. A pointer takes about 200 bytes per column. */
  private val MaxTextBytes = 8 << 20

  def checksum(bytes: Array[Byte]): Long = {
    val crc = new CRC32()
    crc.update(bytes)
    crc.getValue
  }

  /** The checksum of a file of any length. */
  def checksum(fileSystem: FileSystem, path: Path): Long = {
    val in = new CheckedInputStream(FileSystems.open(fileSystem, path), new CRC32())
    try {
      val buffer = new Array[Byte](1 << 20)
      while (in.read(buffer) >= 0) {}
      in.getChecksum.getValue
    } finally in.close()
  }

  /** Writes a new file, whose name must be unique. If this fails, deletes the partial file. */
  def write(fileSystem: FileSystem, path: Path, bytes: Array[Byte]): Unit = {
    val fs = FileSystems.withoutChecksums(fileSystem)
    try {
      val out = fs.createFile(path).overwrite(false).build()
      try out.write(bytes)
      finally out.close()
    } catch {
      case NonFatal(failure) =>
        fs.delete(path, false)
        throw failure
    }
  }

  /** Reads a file. Throws unless it has exactly `length` bytes. */
  def readBytes(fileSystem: FileSystem, path: Path, length: Long): Array[Byte] = {
    val found = fileSystem.getFileStatus(path).getLen
    if (found != length) {
      throw new IOException(s"it has $found bytes instead of $length")
    }
    val bytes = new Array[Byte](Math.toIntExact(length))
    val in = FileSystems.open(fileSystem, path)
    try in.readFully(0L, bytes)
    finally in.close()
    bytes
  }

  def readText(fileSystem: FileSystem, path: Path): String =
    new String(FileSystems.readFully(fileSystem, path, MaxTextBytes), UTF_8)
}
