package io.pyzorder.index

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{FileAlreadyExistsException, Files, Paths}
import java.util.UUID
import java.util.zip.CRC32

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileContext, FileSystem, LocalFileSystem, Path}

import io.pyzorder.publish.TableFolder

/** Whole files of the index, written and read in one piece. */
private[index] object SnapshotFiles {

  def checksum(bytes: Array[Byte]): Long = {
    val crc = new CRC32()
    crc.update(bytes)
    crc.getValue
  }

  /** Writes a file that nobody else knows the name of yet. */
  def write(fileSystem: FileSystem, path: Path, bytes: Array[Byte]): Unit = {
    val out = withoutSideFiles(fileSystem).create(path, false)
    try out.write(bytes) finally out.close()
  }

  /** The file's bytes, which must be exactly `length` many. */
  def readBytes(fileSystem: FileSystem, path: Path, length: Long): Array[Byte] = {
    val found = fileSystem.getFileStatus(path).getLen
    if (found != length) {
      throw new IOException(s"it has $found bytes instead of $length")
    }
    val bytes = new Array[Byte](Math.toIntExact(length))
    val in = fileSystem.open(path)
    try in.readFully(0L, bytes) finally in.close()
    bytes
  }

  def readText(fileSystem: FileSystem, path: Path): String =
    new String(readBytes(fileSystem, path, fileSystem.getFileStatus(path).getLen), UTF_8)

  /** The id of this life of the table, made when there is none. */
  def incarnation(conf: Configuration, folder: TableFolder): String = {
    val fileSystem = folder.incarnation.getFileSystem(conf)
    def read(): Option[String] =
      try Some(readText(fileSystem, folder.incarnation).trim)
      catch { case _: FileNotFoundException => None }
    read().getOrElse {
      createIfAbsent(conf, folder.incarnation, UUID.randomUUID().toString)
      read().getOrElse(throw new FileNotFoundException(folder.incarnation.toString))
    }
  }

  /** Creates a file with all of `text`, or does nothing and returns false: it exists. */
  def createIfAbsent(conf: Configuration, path: Path, text: String): Boolean = {
    val fileSystem = path.getFileSystem(conf)
    val temporary = new Path(path.getParent, s"_temporary-${UUID.randomUUID()}")
    write(fileSystem, temporary, text.getBytes(UTF_8))
    try {
      if (fileSystem.getUri.getScheme == "file") {
        Files.createLink(Paths.get(path.toUri.getPath), Paths.get(temporary.toUri.getPath))
      } else {
        FileContext.getFileContext(path.toUri, conf).rename(temporary, path)
      }
      true
    } catch {
      case _: FileAlreadyExistsException => false
      case _: org.apache.hadoop.fs.FileAlreadyExistsException => false
    } finally {
      fileSystem.delete(temporary, false)
    }
  }

  /** Hadoop's local file system writes a `.crc` beside each file; the index has its own checksums. */
  private def withoutSideFiles(fileSystem: FileSystem): FileSystem = fileSystem match {
    case local: LocalFileSystem => local.getRaw
    case other => other
  }
}
