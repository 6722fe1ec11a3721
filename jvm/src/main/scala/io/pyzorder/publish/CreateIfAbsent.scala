package io.pyzorder.publish

import java.nio.channels.FileChannel
import java.nio.file.{FileAlreadyExistsException, Files, Paths, StandardOpenOption}
import java.nio.file.{Path => LocalPath}
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileContext, FileSystem, Options, Path}

import io.pyzorder.{StoreFailures, ZOrderErrors}

/**
 * The one primitive the protocol rests on: a whole file appears under a name, or someone was first.
 */
trait CreateIfAbsent {

  /**
   * Creates `path` with exactly `bytes`; nobody ever sees a part of them.
   *
   * @return false: the name is taken, nothing was done
   */
  def create(path: Path, bytes: Array[Byte]): Boolean
}

object CreateIfAbsent {

  /** How the names begin that files have until they are complete. */
  val Temporary: String = "_temporary-"

  private def temporaryName: String = Temporary + UUID.randomUUID()

  /** The primitive of the path's store; an error for stores that are not known to have one. */
  def of(hadoopConf: Configuration, path: Path): CreateIfAbsent = {
    val fs = path.getFileSystem(hadoopConf)
    fs.getUri.getScheme match {
      case "file" => new LocalLink(hadoopConf)
      case "hdfs" | "viewfs" | "webhdfs" | "swebhdfs" => new Renamed(fs, hadoopConf)
      case "s3a" => new Conditional(fs)
      case scheme =>
        throw ZOrderErrors.storeUnsupported(
          scheme,
          "it is not known to create a file only if no other writer did. Keep the table on HDFS, " +
            "S3 (s3a) or a local disk")
    }
  }

  /** A hard link to a complete temporary file. `create(overwrite = false)` can have two winners. */
  private final class LocalLink(conf: Configuration) extends CreateIfAbsent {
    override def create(path: Path, bytes: Array[Byte]): Boolean = {
      val target = Paths.get(path.toUri.getPath)
      val temporary = target.resolveSibling(temporaryName)
      try {
        val channel = FileChannel.open(
          temporary, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)
        try {
          val buffer = java.nio.ByteBuffer.wrap(bytes)
          while (buffer.hasRemaining) channel.write(buffer)
          channel.force(true)
        } finally channel.close()
        OwnFiles.share(conf, new Path(temporary.toUri))
        link(target, temporary)
      } finally Files.deleteIfExists(temporary)
    }

    private def link(target: LocalPath, temporary: LocalPath): Boolean =
      try {
        Files.createLink(target, temporary)
        true
      } catch {
        case _: FileAlreadyExistsException => false
        case failure: UnsupportedOperationException => throw noLinks(target, failure)
        case failure: java.nio.file.AccessDeniedException => throw failure
        case failure: java.nio.file.NoSuchFileException => throw failure
        case failure: java.nio.file.FileSystemException if StoreFailures.isFull(failure) =>
          throw failure
        case failure: java.nio.file.FileSystemException => throw noLinks(target, failure)
      }
  }

  private def noLinks(path: LocalPath, failure: Exception): Exception =
    ZOrderErrors.storeUnsupported(
      "file",
      s"no hard link could be made for $path (${failure.getMessage}), without which two writers " +
        "could both believe they hold the table. Keep the table on a disk with hard links")

  /** A rename, which HDFS refuses when the name is taken, of a complete temporary file. */
  private final class Renamed(fs: FileSystem, conf: Configuration) extends CreateIfAbsent {
    override def create(path: Path, bytes: Array[Byte]): Boolean = {
      val temporary = new Path(path.getParent, temporaryName)
      try {
        val out = fs.createFile(temporary).overwrite(false).build() // makes no folder
        try {
          out.write(bytes)
          out.hsync()
        } finally out.close()
        OwnFiles.share(conf, temporary)
        FileContext.getFileContext(path.toUri, conf).rename(temporary, path, Options.Rename.NONE)
        true
      } catch {
        case _: org.apache.hadoop.fs.FileAlreadyExistsException => false
      } finally fs.delete(temporary, false)
    }
  }

  /** A put that S3 refuses when the name is taken: If-None-Match. */
  private final class Conditional(fs: FileSystem) extends CreateIfAbsent {
    override def create(path: Path, bytes: Array[Byte]): Boolean = {
      val out =
        try {
          fs.createFile(path).overwrite(false)
            .must("fs.option.create.conditional.overwrite", true).build()
        } catch {
          case _: org.apache.hadoop.fs.FileAlreadyExistsException => return false
          case failure: IllegalArgumentException =>
            throw ZOrderErrors.storeUnsupported(
              "s3a",
              "this version of hadoop-aws has no conditional put, without which two writers " +
                s"could both believe they hold the table (${failure.getMessage}). Use Hadoop " +
                "3.4.2 or later, with fs.s3a.create.conditional.enabled=true")
        }
      try {
        out.write(bytes)
        out.close()
        true
      } catch {
        case failure: java.io.IOException if refused(failure) => false
      }
    }

    private def refused(failure: Throwable): Boolean =
      Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).take(10).exists { cause =>
        cause.isInstanceOf[org.apache.hadoop.fs.FileAlreadyExistsException] ||
        cause.getClass.getSimpleName == "RemoteFileChangedException" ||
        String.valueOf(cause.getMessage).contains("412")
      }
  }
}
