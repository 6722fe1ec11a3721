package io.pyzorder.layout

import java.io.FileNotFoundException

import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.mapreduce.{Job, TaskAttemptContext, TaskAttemptID, TaskID, TaskType}
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl
import org.apache.parquet.hadoop.ParquetOutputFormat
import org.apache.spark.sql.execution.datasources.{FileFormat, OutputWriter, OutputWriterFactory}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{MetadataBuilder, StructType}
import org.apache.spark.util.SerializableConfiguration

import io.pyzorder.publish.{Incarnation, OwnFiles, TableFolder}

/** Opens a format's own writers in tasks, all with the same options. */
final class FileWriters private (
    factory: OutputWriterFactory,
    schema: StructType,
    isParquet: Boolean,
    conf: SerializableConfiguration)
    extends Serializable {

  /** How the names of files end. */
  def extension: String = factory.getFileExtension(contextOf(0))

  /** The store of a path. */
  def fileSystem(path: Path): FileSystem = path.getFileSystem(conf.value)

  /** Makes a folder of pyzorder's own, in the table's `_zorder`. */
  def makeFolder(folder: Path): Unit = OwnFiles.makeFolder(conf.value, folder)

  /**
   * An error if the table is not there any more. The writers of Parquet and ORC make the folders of
   * the file that they open, so where it was renamed or dropped a moment before they make its
   * folder anew.
   */
  def checkThere(table: TableFolder): Unit =
    if (isGone(table)) {
      throw new FileNotFoundException(s"$table was overwritten, renamed or dropped")
    }

  /**
   * Where the table is gone: takes away the folders that a discarded file was alone in. The table's
   * own, too: it was made with the file.
   */
  def clear(table: TableFolder, folder: Path): Unit = if (isGone(table)) {
    OwnFiles.removeEmpty(conf.value, folder)
    fileSystem(table.root).delete(table.root, false)
  }

  private def isGone(table: TableFolder): Boolean =
    Incarnation.read(conf.value, table).isEmpty

  /** A writer of the file number `leaf`, which takes rows as they are stored. */
  def open(path: Path, leaf: Int): OutputWriter = {
    val context = contextOf(leaf)
    val flat =
      if (isParquet) FlatParquetWriter.open(path.toString, context.getConfiguration, schema)
      else None
    flat.getOrElse(factory.newInstance(path.toString, schema, context))
  }

  private def contextOf(leaf: Int): TaskAttemptContext = {
    val task = new TaskID("pyzorder", 0, TaskType.REDUCE, leaf)
    new TaskAttemptContextImpl(conf.value, new TaskAttemptID(task, 0))
  }
}

object FileWriters {

  /** The setting that says whether a Parquet column is to have a dictionary. */
  def dictionaryOf(column: String): String = s"${ParquetOutputFormat.ENABLE_DICTIONARY}#$column"

  /**
   * Bytes of a Parquet row group where neither the table nor the session says: readers skip row
   * groups by their minima and maxima, which the order inside a file makes narrow. ORC's readers
   * skip every 10,000 rows as it is.
   */
  private val RowGroupSize = 32L << 20

  /**
   * @param session RewriteSession.of the user's
   * @param schema  of the files
   * @param options the table's, with `compression`
   */
  def of(
      session: shim.SparkSession,
      format: FileFormat,
      schema: StructType,
      options: Map[String, String]): FileWriters = {
    val stored = asWritten(schema)
    val job = Job.getInstance(session.sessionState.newHadoopConfWithOptions(options))
    job.getConfiguration.setIfUnset("parquet.block.size", RowGroupSize.toString)
    val factory = format.prepareWrite(session, job, options, stored)
    new FileWriters(
      factory, stored, format.isInstanceOf[ParquetFileFormat],
      new SerializableConfiguration(job.getConfiguration))
  }

  /** The schema that new files carry: without what only the catalog means. */
  private def asWritten(schema: StructType): StructType =
    StructType(InputRelation.asStored(schema).map { field =>
      field.copy(metadata = new MetadataBuilder().withMetadata(field.metadata)
        .remove("EXISTS_DEFAULT").remove("CURRENT_DEFAULT").build())
    })
}
