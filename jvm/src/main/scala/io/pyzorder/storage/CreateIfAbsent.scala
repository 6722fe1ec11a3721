package io.pyzorder.storage

import java.io.{FileNotFoundException, IOException}
import java.nio.channels.FileChannel
import java.nio.file.{FileAlreadyExistsException, Files, Paths, StandardOpenOption}
import java.nio.file.{Path => LocalPath}
import java.util.UUID

import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileContext, FileSystem, Options, Path}

import io.pyzorder.common.{StoreFailures, ZOrderErrors}

/**
 * The one primitive the protocol rests on: a whole file appears under a name, or someone was first.
 */
trait CreateIfAbsent {

  /**
   * Creates `path` with exactly `bytes`; nobody ever sees a part of them.
   *
   * @return false: the name is taken, nothing was done. Of several writers of the same bytes more
   *         than one may be told true: where it matters who was first, they must differ
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
    if (Links.inOwn(path)) throw ZOrderErrors.linked(path.toString)
    fs.getUri.getScheme match {
      case "file" => new LocalLink(hadoopConf)
      case "hdfs" | "viewfs" | "webhdfs" | "swebhdfs" => new Renamed(fs, hadoopConf)
      case "s3a" =>
        if (!fs.hasPathCapability(path, ConditionalPut)) throw ZOrderErrors.noConditionalPut
        new Conditional(fs)
      case scheme => throw ZOrderErrors.unknownStore(scheme)
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
        MetadataFiles.share(conf, new Path(temporary.toUri))
        link(target, temporary)
      } finally Files.deleteIfExists(temporary)
    }

    private def link(target: LocalPath, temporary: LocalPath): Boolean =
      try {
        Files.createLink(target, temporary)
        true
      } catch {
        case _: FileAlreadyExistsException => false
        case failure: UnsupportedOperationException =>
          throw ZOrderErrors.noHardLinks(target.toString, failure)
        case failure: java.nio.file.AccessDeniedException => throw failure
        case failure: java.nio.file.NoSuchFileException => throw failure
        case failure: java.nio.file.FileSystemException if StoreFailures.isFull(failure) =>
          throw failure
        case failure: java.nio.file.FileSystemException =>
          throw ZOrderErrors.noHardLinks(target.toString, failure)
      }
  }

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
        MetadataFiles.share(conf, temporary)
        FileContext.getFileContext(path.toUri, conf).rename(temporary, path, Options.Rename.NONE)
        true
      } catch {
        case _: org.apache.hadoop.fs.FileAlreadyExistsException => false
      } finally fs.delete(temporary, false)
    }
  }

  /**
   * A put that S3 refuses when the name is taken: If-None-Match. Its answer can get lost, and is
   * then asked for by putting again, which finds the name taken by the first put. So whoever is not
   * told that it was first looks at the bytes: its own are there only if it was.
   */
  private final class Conditional(fs: FileSystem) extends CreateIfAbsent {
    override def create(path: Path, bytes: Array[Byte]): Boolean = {
      var created: Option[Boolean] = None
      var tries = 0
      while (created.isEmpty) {
        tries += 1
        created =
          try Some(put(path, bytes))
          catch {
            case failure: IOException =>
              val there =
                try Some(FileSystems.readFully(fs, path))
                catch { case _: FileNotFoundException => None }
              // Refused though nothing is there: it went since, or another put is under way.
              if (there.isEmpty && (!isRefusal(failure) || tries == MaxTries)) throw failure
              if (there.isEmpty) Thread.sleep(50L << tries)
              there.map(java.util.Arrays.equals(_, bytes))
          }
      }
      created.get
    }

    /** False: the name was seen to be taken before anything was sent. */
    private def put(path: Path, bytes: Array[Byte]): Boolean = {
      val stream =
        try Some(fs.createFile(path).overwrite(false).must(ConditionalPut, true).build())
        catch { case _: org.apache.hadoop.fs.FileAlreadyExistsException => None }
      stream.foreach { out =>
        out.write(bytes)
        out.close()
      }
      stream.isDefined
    }

    /** The name is taken (412), or another put of it is under way (409). */
    private def isRefusal(failure: Throwable): Boolean =
      Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).take(10)
        .flatMap(cause =>
          Try(cause.getClass.getMethod("statusCode").invoke(cause)).toOption)
        .exists(status => status == 409 || status == 412)
  }

  private val ConditionalPut = "fs.option.create.conditional.overwrite"

  /** Of a put that is refused though nothing is there. */
  private val MaxTries = 5
}
