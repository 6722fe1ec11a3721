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
 * The only primitive on which the journal's protocol relies: either a complete file appears under a
 * name, or the name is already taken.
 */
trait CreateIfAbsent {

  /**
   * Creates `path` with exactly `bytes`. Readers never see a partial file.
   *
   * @return false if the name is taken, in which case nothing is written. If several writers write
   *         the same bytes, more than one of the calls may return true. If it matters which writer
   *         was first, the bytes must differ between writers
   */
  def create(path: Path, bytes: Array[Byte]): Boolean
}

object CreateIfAbsent {

  /** The prefix of a file's name until the file is complete. */
  val Temporary: String = "_temporary-"

  private def temporaryName: String = Temporary + UUID.randomUUID()

  /** The implementation for the path's store. Throws if the store is not supported. */
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

  /**
   * Writes a complete temporary file, then creates a hard link to it under the final name. Hadoop's
   * `create(overwrite = false)` is not enough, because two concurrent calls can both succeed.
   */
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
      } finally delete(temporary)
    }

    /** Does not throw, because that would hide the failure that ended `create`. */
    private def delete(temporary: LocalPath): Unit =
      try Files.deleteIfExists(temporary)
      catch { case _: java.nio.file.FileSystemException => }

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

  /**
   * Writes a complete temporary file, then renames it to the final name. HDFS rejects the rename if
   * the name is taken.
   */
  private final class Renamed(fs: FileSystem, conf: Configuration) extends CreateIfAbsent {
    override def create(path: Path, bytes: Array[Byte]): Boolean = {
      val temporary = new Path(path.getParent, temporaryName)
      try {
        val out = fs.createFile(temporary).overwrite(false).build() // does not create folders
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
   * Sends a PUT with If-None-Match. S3 rejects the PUT if the name is taken. If the response is
   * lost, the client retries and finds the name taken by its own first PUT. If a PUT is rejected,
   * the writer therefore reads the object back. The object contains the writer's bytes only if the
   * writer was first.
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
              // If the PUT was rejected but there is no object, either the object has been deleted
              // in the meantime, or another PUT is in progress.
              if (there.isEmpty && (!isRefusal(failure) || tries == MaxTries)) throw failure
              if (there.isEmpty) Thread.sleep(50L << tries)
              there.map(java.util.Arrays.equals(_, bytes))
          }
      }
      created.get
    }

    /** Returns false if S3 reports, before any data is sent, that the name is taken. */
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

    /** Whether S3 says that the name is taken (412) or that another PUT is in progress (409). */
    private def isRefusal(failure: Throwable): Boolean =
      Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).take(10)
        .flatMap(cause =>
          Try(cause.getClass.getMethod("statusCode").invoke(cause)).toOption)
        .exists(status => status == 409 || status == 412)
  }

  private val ConditionalPut = "fs.option.create.conditional.overwrite"

  /**
   * The maximum number of attempts at a PUT that is rejected although the object does not exist.
   */
  private val MaxTries = 5
}
