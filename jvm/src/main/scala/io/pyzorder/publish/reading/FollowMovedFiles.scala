package io.pyzorder.publish.reading

import java.io.{Closeable, IOException}

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
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

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.storage.FileSystems

/**
 * Spark's Parquet format, with readers that follow a file when an OPTIMIZE moves it.
 *
 * @param roots the root paths of the relation
 */
class ZOrderParquetFileFormat(roots: Seq[Path]) extends ParquetFileFormat {

  // In Spark, any two ParquetFileFormat objects are equal, so their hash codes must also be equal.
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
    FollowMoved(sparkSession, hadoopConf, roots,
      super.buildReaderWithPartitionValues(
        sparkSession, dataSchema, partitionSchema, requiredSchema, filters, options, hadoopConf))
}

/** Spark's ORC format, with readers that follow a file when an OPTIMIZE moves it. */
class ZOrderOrcFileFormat(roots: Seq[Path]) extends OrcFileFormat {

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
    FollowMoved(sparkSession, hadoopConf, roots,
      super.buildReaderWithPartitionValues(
        sparkSession, dataSchema, partitionSchema, requiredSchema, filters, options, hadoopConf))
}

/**
 * A file reader that opens a moved file at the path that MovedFileLookup finds. FileScanRDD calls
 * this reader and therefore does not treat a moved file as missing, even if ignoreMissingFiles is
 * set.
 */
private final class FollowMoved(
    conf: Broadcast[SerializableConfiguration],
    roots: Seq[Path],
    read: PartitionedFile => Iterator[InternalRow])
    extends (PartitionedFile => Iterator[InternalRow]) with Serializable {

  override def apply(file: PartitionedFile): Iterator[InternalRow] =
    new FollowedRows(file, conf.value.value, roots, read)
}

/**
 * The rows, or batches of rows, of a file. On stores such as S3, where every read opens the file by
 * its name, the file can disappear between two reads. The iterator then reopens the file at its new
 * path and skips as many rows as it has already returned. This is correct because moving a file
 * does not change its bytes, so a reader produces the same rows.
 */
private final class FollowedRows[T](
    file: PartitionedFile,
    conf: Configuration,
    roots: Seq[Path],
    read: PartitionedFile => Iterator[T])
    extends Iterator[T] with Closeable {

  private var at = planned
  private var rows: Iterator[T] = Iterator.empty
  private var delivered = 0L
  private var moves = 0

  try rows = read(at)
  catch { case NonFatal(failure) => follow(failure) }

  /**
   * The planned file. If an OPTIMIZE has moved it to `_zorder/_retired/` and another writer has
   * since reused its name, the result is the file in `_zorder/_retired/`. A name with a UUID is
   * never reused, so no request is sent for such a name.
   */
  private def planned: PartitionedFile =
    if (FollowMoved.hasUuid(file.toPath.getName)) file
    else {
      val replaced = MovedFileLookup.replaced(
        conf, file.toPath, file.fileSize, file.modificationTime, roots)
      replaced.fold(file)(path => file.copy(filePath = SparkPath.fromPath(path)))
    }

  override def hasNext: Boolean =
    try rows.hasNext
    catch {
      case NonFatal(failure) =>
        follow(failure)
        hasNext
    }

  override def next(): T = {
    val row =
      try rows.next()
      catch {
        case NonFatal(failure) =>
          follow(failure)
          return next()
      }
    delivered += 1
    row
  }

  override def close(): Unit = rows match {
    case open: Closeable => open.close()
    case _ => ()
  }

  /**
   * Continues reading at the file's new path. Rethrows the failure if the file is not gone, or if
   * its new path cannot be found.
   */
  private def follow(first: Throwable): Unit = {
    var failure = first
    while (failure != null) {
      if (moves == FollowMoved.MaxMoves || !isGone(failure)) throw failure
      moves += 1
      close()
      val now =
        MovedFileLookup.locate(conf, file.toPath, file.fileSize, file.modificationTime, roots)
      at = file.copy(filePath = SparkPath.fromPath(now.getOrElse(throw failure)))
      failure =
        try {
          rows = read(at)
          (0L until delivered).foreach(_ => rows.next())
          null
        } catch { case NonFatal(again) => again }
    }
  }

  /**
   * Whether a read failed because the file is gone. Because a stream may report only that it is
   * closed, the path is also checked after an I/O error.
   */
  private def isGone(failure: Throwable): Boolean =
    ZOrderErrors.isMissing(failure) ||
      Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).take(20)
        .exists(_.isInstanceOf[IOException]) &&
      !FileSystems.exists(at.toPath.getFileSystem(conf), at.toPath)
}

private object FollowMoved {

  /** The maximum number of times that a reader looks for its file's new path. */
  val MaxMoves = 5

  private val Uuid = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}".r.unanchored

  def hasUuid(name: String): Boolean = Uuid.findFirstIn(name).isDefined

  def apply(
      session: SparkSession,
      hadoopConf: Configuration,
      roots: Seq[Path],
      read: PartitionedFile => Iterator[InternalRow]): PartitionedFile => Iterator[InternalRow] =
    new FollowMoved(
      session.sparkContext.broadcast(new SerializableConfiguration(hadoopConf)), roots.toList, read)
}
