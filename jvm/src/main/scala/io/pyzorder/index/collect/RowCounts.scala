package io.pyzorder.index.collect

import java.nio.charset.StandardCharsets.US_ASCII

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.orc.OrcFile
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.util.SerializableConfiguration

import io.pyzorder.common.{JobDescription, TaskFunction}

/** The row counts recorded in the footers of data files. */
object RowCounts {

  /** The total number of rows in the files, counted by one Spark job. */
  def sum(session: shim.SparkSession, files: Seq[Path]): Long =
    if (files.isEmpty) {
      0L
    } else {
      val conf = new SerializableConfiguration(session.sessionState.newHadoopConf())
      val shared = session.sparkContext.broadcast(conf)
      val parts = math.min(files.length, session.sparkContext.defaultParallelism * 4)
      val counts = session.sparkContext.parallelize(files.map(_.toString), parts)
        .map(TaskFunction((name: String) => of(shared.value.value, new Path(name))))
      JobDescription.step(session.sparkContext, "count the rows of old and new files")(
        counts.collect()).sum
    }

  /** The number of rows in one Parquet or ORC file. An empty file has no rows. */
  def of(hadoopConf: Configuration, path: Path): Long = {
    val fs = path.getFileSystem(hadoopConf)
    val length = fs.getFileStatus(path).getLen
    if (length == 0) 0L
    else if (isParquet(hadoopConf, path, length)) parquet(hadoopConf, path)
    else orc(hadoopConf, path)
  }

  /** Whether a non-empty file is a Parquet file, judging by its last bytes. */
  private[pyzorder] def isParquet(hadoopConf: Configuration, path: Path, length: Long): Boolean =
    tail(hadoopConf, path, length).startsWith("PAR")

  private def tail(hadoopConf: Configuration, path: Path, length: Long): String = {
    val bytes = new Array[Byte](math.min(4L, length).toInt)
    val in = path.getFileSystem(hadoopConf).open(path)
    try in.readFully(length - bytes.length, bytes)
    finally in.close()
    new String(bytes, US_ASCII)
  }

  private def parquet(hadoopConf: Configuration, path: Path): Long = {
    val reader = ParquetFileReader.open(
      HadoopInputFile.fromPath(path, hadoopConf),
      HadoopReadOptions.builder(hadoopConf, path).build())
    try reader.getRecordCount
    finally reader.close()
  }

  private def orc(hadoopConf: Configuration, path: Path): Long = {
    val reader = OrcFile.createReader(path, OrcFile.readerOptions(hadoopConf))
    try reader.getNumberOfRows
    finally reader.close()
  }
}
