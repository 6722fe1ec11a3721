package io.pyzorder.publish

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

import io.pyzorder.ZOrderErrors

/**
 * Spark's Parquet format, except that a planned file which an OPTIMIZE moved is read where it is.
 */
class ZOrderParquetFileFormat extends ParquetFileFormat {

  // Spark's own equality is "any Parquet format"; hashes must agree with it.
  override def hashCode(): Int = classOf[ParquetFileFormat].hashCode()

  override def equals(other: Any): Boolean = other.isInstanceOf[ParquetFileFormat]

  override def buildReaderWithPartitionValues(
      sparkSession: SparkSession,
      dataSchema: StructType,
      partitionSchema: StructType,
      requiredSchema: StructType,
      filters: Seq[Filter],
      options: Map[String, String],
      hadoopConf: Configuration): PartitionedFile => Iterator[InternalRow] =
    FollowMoved(sparkSession, hadoopConf,
      super.buildReaderWithPartitionValues(
        sparkSession, dataSchema, partitionSchema, requiredSchema, filters, options, hadoopConf))
}

/** Spark's ORC format, except that a planned file which an OPTIMIZE moved is read where it is. */
class ZOrderOrcFileFormat extends OrcFileFormat {

  override def hashCode(): Int = classOf[OrcFileFormat].hashCode()

  override def equals(other: Any): Boolean = other.isInstanceOf[OrcFileFormat]

  override def buildReaderWithPartitionValues(
      sparkSession: SparkSession,
      dataSchema: StructType,
      partitionSchema: StructType,
      requiredSchema: StructType,
      filters: Seq[Filter],
      options: Map[String, String],
      hadoopConf: Configuration): PartitionedFile => Iterator[InternalRow] =
    FollowMoved(sparkSession, hadoopConf,
      super.buildReaderWithPartitionValues(
        sparkSession, dataSchema, partitionSchema, requiredSchema, filters, options, hadoopConf))
}

/**
 * A reader that opens a file which has gone from its place where MovedFiles finds it. It sits below
 * FileScanRDD, which drops missing files under ignoreMissingFiles: here they are not missing.
 */
private final class FollowMoved(
    conf: Broadcast[SerializableConfiguration],
    read: PartitionedFile => Iterator[InternalRow])
    extends (PartitionedFile => Iterator[InternalRow]) with Serializable {

  override def apply(file: PartitionedFile): Iterator[InternalRow] = {
    var at = file
    var moves = 0
    var rows: Iterator[InternalRow] = null
    while (rows == null) {
      try rows = read(at)
      catch {
        case NonFatal(failure) if ZOrderErrors.isMissing(failure) && moves < FollowMoved.MaxMoves =>
          moves += 1
          val now = MovedFiles.locate(
            conf.value.value, file.toPath, file.fileSize, file.modificationTime)
          at = now match {
            case Some(path) => file.copy(filePath = SparkPath.fromPath(path))
            case None => throw failure
          }
      }
    }
    rows
  }
}

private object FollowMoved {

  /** How often a file may move between being found and being opened. */
  private val MaxMoves = 5

  def apply(
      session: SparkSession,
      hadoopConf: Configuration,
      read: PartitionedFile => Iterator[InternalRow]): PartitionedFile => Iterator[InternalRow] =
    new FollowMoved(
      session.sparkContext.broadcast(new SerializableConfiguration(hadoopConf)), read)
}
