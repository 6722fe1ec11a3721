package io.pyzorder.index.store

import java.io.ByteArrayOutputStream

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.mapreduce.Job
import org.apache.parquet.hadoop.ParquetWriter
import org.apache.parquet.hadoop.api.WriteSupport
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.parquet.io.{OutputFile, PositionOutputStream}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.execution.datasources.parquet.{ParquetFileFormat, ParquetWriteSupport}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

import io.pyzorder.index.model.{ColumnStatistics, FileEntry, FileSketches, IndexSchema}
import io.pyzorder.index.model.IndexedColumn

/**
 * Encodes entries as the bytes of a snapshot's Parquet file. Spark's own row writer writes the
 * bytes to memory.
 */
object SnapshotWriter {

  /**
   * These settings have fixed values, because a snapshot does not record the settings of the
   * session that wrote it.
   */
  private val fixedSettings: Seq[(String, String)] = Seq(
    SQLConf.PARQUET_OUTPUT_TIMESTAMP_TYPE.key -> "TIMESTAMP_MICROS",
    SQLConf.PARQUET_REBASE_MODE_IN_WRITE.key -> "CORRECTED",
    SQLConf.PARQUET_INT96_REBASE_MODE_IN_WRITE.key -> "CORRECTED",
    SQLConf.PARQUET_WRITE_LEGACY_FORMAT.key -> "false",
    SQLConf.PARQUET_FIELD_ID_WRITE_ENABLED.key -> "false")

  /** The approximate compressed size of a row group, the unit that a Spark task reads. */
  private val RowGroupSize = 4L * 1024 * 1024

  /** The bytes of a snapshot with these entries and their statistics for `columns`. */
  def bytesOf(
      session: shim.SparkSession,
      columns: Seq[IndexedColumn],
      entries: Seq[FileEntry]): Array[Byte] = {
    val schema = IndexSchema.of(columns)
    val settings = session.sessionState.conf.clone()
    fixedSettings.foreach { case (key, value) => settings.setConfString(key, value) }
    SQLConf.withExistingConf(settings) {
      val output = new MemoryOutputFile
      val writer = new RowWriterBuilder(output)
        .withConf(configuration(session, schema))
        .withCompressionCodec(CompressionCodecName.SNAPPY)
        .withRowGroupSize(RowGroupSize)
        .build()
      entries.foreach(entry => writer.write(rowOf(entry, columns, schema)))
      writer.close()
      output.bytes.toByteArray
    }
  }

  private def configuration(session: shim.SparkSession, schema: StructType): Configuration = {
    val job = Job.getInstance(session.sessionState.newHadoopConf())
    new ParquetFileFormat().prepareWrite(session, job, Map.empty, schema)
    fixedSettings.foreach { case (key, value) => job.getConfiguration.set(key, value) }
    job.getConfiguration
  }

  /** One entry as a row of the index table. */
  private[pyzorder] def rowOf(
      entry: FileEntry,
      columns: Seq[IndexedColumn],
      schema: StructType): InternalRow = {
    val values = new Array[Any](schema.length)
    values(0) = UTF8String.fromString(entry.path)
    values(1) = entry.size
    values(2) = entry.modificationTime
    values(3) = entry.numRecords
    values(4) = ArrayData.toArrayData(entry.clusteredBy.map(UTF8String.fromString).toArray[Any])
    values(5) = UTF8String.fromString(entry.readSettings)
    entry.sketches match {
      case FileSketches.Stored(segment, number) =>
        values(6) = UTF8String.fromString(segment)
        values(7) = number
      case _ =>
    }
    var next = IndexSchema.fileFields.length
    columns.foreach { column =>
      val known = entry.statistics.getOrElse(column.name, ColumnStatistics.unknown)
      values(next) = known.bounds.map(_._1).orNull
      values(next + 1) = known.bounds.map(_._2).orNull
      values(next + 2) = known.nullCount.map(count => count: Any).orNull
      next += 3
      if (IndexSchema.hasNan(column.dataType)) {
        values(next) = known.nanSeen
        next += 1
      }
      values(next) = known.exact
      values(next + 1) = known.empty
      values(next + 2) = known.settingsDependent
      next += 3
    }
    new GenericInternalRow(values)
  }

  private class RowWriterBuilder(file: OutputFile)
      extends ParquetWriter.Builder[InternalRow, RowWriterBuilder](file) {

    override protected def self(): RowWriterBuilder = this

    override protected def getWriteSupport(conf: Configuration): WriteSupport[InternalRow] =
      new ParquetWriteSupport
  }

  private class MemoryOutputFile extends OutputFile {

    val bytes: ByteArrayOutputStream = new ByteArrayOutputStream()

    override def create(blockSizeHint: Long): PositionOutputStream = new PositionOutputStream {
      override def getPos: Long = bytes.size.toLong
      override def write(b: Int): Unit = bytes.write(b)
      override def write(data: Array[Byte], off: Int, len: Int): Unit = bytes.write(data, off, len)
    }

    override def createOrOverwrite(blockSizeHint: Long): PositionOutputStream =
      create(blockSizeHint)

    override def supportsBlockSize: Boolean = false

    override def defaultBlockSize: Long = 0
  }
}
