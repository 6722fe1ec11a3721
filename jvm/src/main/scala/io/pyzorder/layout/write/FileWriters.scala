package io.pyzorder.layout.write

import java.io.FileNotFoundException

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{ChecksumFileSystem, FileSystem, Path}
import org.apache.hadoop.mapreduce.{Job, TaskAttemptContext, TaskAttemptID, TaskID, TaskType}
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl
import org.apache.parquet.hadoop.ParquetOutputFormat
import org.apache.spark.sql.execution.datasources.{FileFormat, OutputWriter, OutputWriterFactory}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{MetadataBuilder, StructType}
import org.apache.spark.util.SerializableConfiguration

import io.pyzorder.storage.{Incarnation, MetadataFiles, TableFolder}

/**
 * Opens writers for files of one format. Tasks receive copies of the driver's instance, so all
 * files are written with the same options.
 */
final class FileWriters private (
    factory: OutputWriterFactory,
    schema: StructType,
    isParquet: Boolean,
    conf: SerializableConfiguration)
    extends Serializable {

  @transient private lazy val keeping = FolderKeepingDisk.in(conf.value)

  /** File name extension. */
  def extension: String = factory.getFileExtension(contextOf(0, conf.value))

  /** The file system of a path. */
  def fileSystem(path: Path): FileSystem = path.getFileSystem(conf.value)

  /**
   * Opens a writer for file number `leaf` at a path in the table's staging folder. The writer
   * expects rows in their stored form.
   *
   * Parquet and ORC writers create the parent folder of a file that they open. If the table is
   * deleted or renamed at that moment, the writer recreates the table's folder. This method then
   * removes the folder along with the file. A folder that other writers have created or are using
   * is kept, because it belongs to a new table. Deleting a table from a local disk takes a while,
   * so on local disks, FolderKeepingDisk prevents the writers from recreating folders.
   */
  def stage(table: TableFolder, path: Path, leaf: Int): OutputWriter = {
    val keepsFolders = FolderKeepingDisk.serves(path, conf.value)
    var opening = false
    var opened: Option[OutputWriter] = None
    try {
      checkThere(table)
      MetadataFiles.makeFolder(conf.value, path.getParent)
      checkThere(table)
      opening = true
      opened = Some(
        if (keepsFolders) open(path, leaf, keeping) else open(path, leaf))
      checkThere(table)
      opened.get
    } catch {
      case NonFatal(failure) =>
        var madeAnew = false
        FileWriters.afterFailure(failure)(
          () =>
            madeAnew = opening && !keepsFolders && isGone(table) &&
              fileSystem(path).exists(path.getParent),
          () => opened.foreach(_.close()),
          () => discard(table, path),
          () => if (madeAnew) MetadataFiles.removeUnused(conf.value, table.root))
        throw failure
    }
  }

  /** Opens a writer for a file at any path. The writer expects rows in their stored form. */
  def open(path: Path, leaf: Int): OutputWriter = open(path, leaf, conf.value)

  private def open(path: Path, leaf: Int, conf: Configuration): OutputWriter = {
    val context = contextOf(leaf, conf)
    val flat =
      if (isParquet) FlatParquetWriter.open(path.toString, context.getConfiguration, schema)
      else None
    flat.getOrElse(factory.newInstance(path.toString, schema, context))
  }

  /**
   * Deletes a file in the staging folder and, if the table is gone, the empty folders above the
   * file.
   */
  def discard(table: TableFolder, path: Path): Unit = {
    fileSystem(path) match {
      case disk: ChecksumFileSystem => // its `delete` keeps the checksum file of a missing file
        disk.delete(path, false)
        disk.getRawFileSystem.delete(disk.getChecksumFile(path), false)
      case store => store.delete(path, false)
    }
    if (isGone(table)) MetadataFiles.removeEmpty(conf.value, path.getParent)
  }

  private def checkThere(table: TableFolder): Unit =
    if (isGone(table)) {
      throw new FileNotFoundException(
        s"${table.incarnation} no longer exists: the table was overwritten, renamed or dropped")
    }

  private def isGone(table: TableFolder): Boolean =
    Incarnation.read(conf.value, table).isEmpty

  private def contextOf(leaf: Int, conf: Configuration): TaskAttemptContext = {
    val task = new TaskID("pyzorder", 0, TaskType.REDUCE, leaf)
    new TaskAttemptContextImpl(conf, new TaskAttemptID(task, 0))
  }
}

object FileWriters {

  /**
   * Runs all cleanup steps after a failure. If a step itself fails, its exception is added to
   * `failure` as a suppressed exception. The thread's interrupt flag is cleared during the cleanup,
   * because file system calls fail immediately in an interrupted thread, such as the thread of a
   * task that is being killed.
   */
  def afterFailure(failure: Throwable)(steps: (() => Any)*): Unit = {
    val interrupted = Thread.interrupted()
    steps.foreach { step =>
      try step()
      catch { case NonFatal(further) => failure.addSuppressed(further) }
    }
    if (interrupted) Thread.currentThread().interrupt()
  }

  /** The setting that enables dictionaries for one Parquet column. */
  def dictionaryOf(column: String): String = s"${ParquetOutputFormat.ENABLE_DICTIONARY}#$column"

  /**
   * The default size of a Parquet row group in bytes. Readers skip row groups by their minima and
   * maxima. Because a file's rows are sorted, small row groups have narrow ranges. ORC files need
   * no such setting, because their readers already skip units of 10,000 rows.
   */
  private val RowGroupSize = 32L << 20

  /**
   * @param session a session from RewriteSession.of
   * @param schema  the files' schema
   * @param options the table's options, including `compression`
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

  /** The schema of new files, without metadata that concerns only the catalog. */
  private def asWritten(schema: StructType): StructType =
    StructType(InputRelation.asStored(schema).map { field =>
      field.copy(metadata = new MetadataBuilder().withMetadata(field.metadata)
        .remove("EXISTS_DEFAULT").remove("CURRENT_DEFAULT").build())
    })
}
