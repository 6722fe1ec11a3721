package io.pyzorder.index.collect

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.parquet.{HadoopReadOptions, ParquetReadOptions}
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.parquet.hadoop.util.{HadoopInputFile, HadoopStreams}
import org.apache.parquet.io.{InputFile, SeekableInputStream}

/**
 * Reads the footers of many Parquet files. Settings and the local file system are looked up once,
 * because looking them up takes a considerable part of the time to read a small footer.
 */
private[index] final class ParquetFooters(conf: Configuration) {

  /** The options for all files; None if the files may be encrypted, each with its own keys. */
  private val options: Option[ParquetReadOptions] =
    if (conf.get(ParquetFooters.Encryption) == null) Some(optionsFor(null)) else None

  private def optionsFor(path: Path): ParquetReadOptions =
    HadoopReadOptions.builder(conf, path).useSignedStringMinMax(false).build()

  private lazy val localDisk: FileSystem = new Path("file:/").getFileSystem(conf)

  /** Reads one footer. Propagates the reader's exceptions. */
  def read(file: FileStatus): ParquetMetadata = {
    val isLocal = file.getPath.toUri.getScheme == "file"
    val input =
      if (isLocal) new ParquetFooters.LocalFile(localDisk, file)
      else HadoopInputFile.fromStatus(file, conf)
    val reader = ParquetFileReader.open(input, options.getOrElse(optionsFor(file.getPath)))
    try reader.getFooter
    finally reader.close()
  }
}

private object ParquetFooters {

  /** The setting with the class that provides the keys of encrypted files. */
  private val Encryption = "parquet.crypto.factory.class"

  private final class LocalFile(fs: FileSystem, file: FileStatus) extends InputFile {
    override def getLength: Long = file.getLen
    override def newStream(): SeekableInputStream = HadoopStreams.wrap(fs.open(file.getPath))
    override def toString: String = file.getPath.toString
  }
}
