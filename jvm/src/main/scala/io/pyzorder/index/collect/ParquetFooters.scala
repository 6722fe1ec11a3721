package io.pyzorder.index.collect

import java.io.{File, IOException, InputStream, RandomAccessFile}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.hadoop.util.functional.FutureIO
import org.apache.parquet.{HadoopReadOptions, ParquetReadOptions}
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.parquet.io.{DelegatingSeekableInputStream, InputFile, SeekableInputStream}

import io.pyzorder.storage.{FileSystems, LocalDisk}

/**
 * Reads the footers of many Parquet files. Decoding a small footer takes less time than looking up
 * settings and opening the file, and much less time than a request to a remote store. Settings are
 * therefore looked up once for all files. parquet-mr reads the length of a footer and then the
 * footer; instead, the end of the file is read at once, and without Hadoop on a local disk.
 */
private[index] final class ParquetFooters(conf: Configuration) {

  /** The options for all files; None if the files may be encrypted, each with its own keys. */
  private val options: Option[ParquetReadOptions] =
    if (conf.get(ParquetFooters.Encryption) == null) Some(optionsFor(null)) else None

  private def optionsFor(path: Path): ParquetReadOptions =
    HadoopReadOptions.builder(conf, path).useSignedStringMinMax(false).build()

  /** Reads one footer. Propagates the reader's exceptions. */
  def read(file: FileStatus): ParquetMetadata = {
    val end = new ParquetFooters.End(file, readFrom(file, _))
    val reader = ParquetFileReader.open(end, options.getOrElse(optionsFor(file.getPath)))
    try reader.getFooter
    finally reader.close()
  }

  /** Reads the bytes of the file from `position` to its end. */
  private def readFrom(file: FileStatus, position: Long): Array[Byte] = {
    val bytes = new Array[Byte](Math.toIntExact(file.getLen - position))
    if (isOnPlainDisk(file.getPath)) {
      val opened = new RandomAccessFile(file.getPath.toUri.getPath, "r")
      try {
        opened.seek(position)
        opened.readFully(bytes)
      } finally opened.close()
    } else {
      // With the length, some stores need one request less.
      val opened = FutureIO.awaitFuture(
        file.getPath.getFileSystem(conf).openFile(file.getPath)
          .opt("fs.option.openfile.length", file.getLen.toString).build())
      try {
        opened.seek(position)
        opened.readFully(bytes)
      } finally opened.close()
    }
    bytes
  }

  /**
   * Whether Hadoop would read the same bytes from the local disk, without checking checksums.
   * Throws if it would wait for a pipe to contain checksums.
   */
  private def isOnPlainDisk(path: Path): Boolean =
    path.toUri.getScheme == "file" && readsLocalDisk && {
      val checksums = FileSystems.checksumFile(path)
      if (FileSystems.isSpecial(checksums)) throw new IOException(s"$checksums is not a file")
      !new File(checksums.toUri.getPath).exists()
    }

  private lazy val readsLocalDisk: Boolean =
    LocalDisk.has(new Path("file:/").getFileSystem(conf))
}

private object ParquetFooters {

  /** The setting with the class that provides the keys of encrypted files. */
  private val Encryption = "parquet.crypto.factory.class"

  /** The number of bytes that are read at first. Most footers are shorter. */
  private val FirstBytes = 32 * 1024

  /** The file, as the reader of its footer sees it. Only the end of the file is read. */
  private final class End(file: FileStatus, readFrom: Long => Array[Byte]) extends InputFile {

    override def getLength: Long = file.getLen

    override def toString: String = file.getPath.toString

    override def newStream(): SeekableInputStream = {
      val bytes = new LastBytes(getLength, readFrom)
      new DelegatingSeekableInputStream(bytes) {
        override def getPos: Long = bytes.position
        override def seek(to: Long): Unit = bytes.seek(to)
      }
    }
  }

  /** The last bytes of a file. If earlier bytes are needed, everything after them is read again. */
  private final class LastBytes(length: Long, readFrom: Long => Array[Byte]) extends InputStream {

    private var first = length
    private var bytes = Array.emptyByteArray
    private var next = 0

    def position: Long = first + next

    def seek(position: Long): Unit = {
      if (position < first) {
        first = math.max(0L, math.min(position, length - FirstBytes))
        bytes = readFrom(first)
      }
      next = Math.toIntExact(position - first)
    }

    override def read(): Int =
      if (next >= bytes.length) -1
      else {
        next += 1
        bytes(next - 1) & 0xff
      }

    override def read(into: Array[Byte], offset: Int, most: Int): Int =
      if (next >= bytes.length) -1
      else {
        val count = math.min(most, bytes.length - next)
        System.arraycopy(bytes, next, into, offset, count)
        next += count
        count
      }
  }
}
