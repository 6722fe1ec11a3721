package io.pyzorder.index.store

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.conf.Configuration
import org.apache.parquet.io.InputFile
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.parquet.schema.Type
import org.apache.spark.sql.execution.datasources.parquet.SparkToParquetSchemaConverter
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import scala.jdk.CollectionConverters._

import io.pyzorder.common.ZOrderErrors

/**
 * Validates a snapshot before it is used, because it may be forged. Each check throws an exception
 * if the snapshot fails it.
 */
object SnapshotChecks {

  /** The approximate heap size of an entry without its columns. */
  private val EntryBytes = 64L

  /**
   * The approximate heap sizes of an entry object, including its path, and of a column's
   * statistics.
   */
  private val ObjectBytes = 700L
  private val ColumnBytes = 100L

  /** The pointers whose data files `intact` has already verified. */
  private val known: Cache[SnapshotRef, java.lang.Boolean] =
    CacheBuilder.newBuilder().maximumSize(1000).build[SnapshotRef, java.lang.Boolean]()

  /**
   * Checks the number of entries before memory is allocated for them. If all rows have the same
   * value, Parquet stores it only once, so a small forged file could claim to have billions of
   * rows. In a genuine snapshot, no two entries have the same path, so each entry takes at least
   * one byte.
   */
  def entries(ref: SnapshotRef): Unit =
    if (ref.numFiles < 0 || ref.numFiles > ref.length) {
      throw new IllegalStateException(
        s"it cannot have ${ref.numFiles} entries in ${ref.length} bytes")
    }

  /**
   * Throws if the snapshot would need more than half of the JVM's memory. Even a sparse file, which
   * takes no disk space, needs memory for its full length.
   */
  def memory(ref: SnapshotRef): Unit = {
    val needed = ref.length + ref.numFiles * EntryBytes
    val limit = Runtime.getRuntime.maxMemory / 2
    if (needed > limit) {
      throw new IllegalStateException(
        s"it needs $needed bytes of memory, which exceeds the limit of $limit. Give the driver " +
          "more memory")
    }
  }

  /**
   * Throws if objects for all entries of the snapshot would take more than three quarters of the
   * JVM's memory. The file itself may be far smaller, because names and statistics can compress
   * well.
   */
  def objects(ref: SnapshotRef, columns: Int): Unit = {
    val memory = Runtime.getRuntime.maxMemory
    within(memory - memory / 4, ref, columns)
  }

  /**
   * Throws if a listing of all files would take more than half of the JVM's memory. The listing
   * remains in memory.
   */
  def listing(ref: SnapshotRef): Unit =
    within(Runtime.getRuntime.maxMemory / 2, ref, columns = 0)

  private def within(limit: Long, ref: SnapshotRef, columns: Int): Unit = {
    val needed = ref.numFiles * (ObjectBytes + columns * ColumnBytes)
    if (needed > limit) {
      throw ZOrderErrors.indexTooLarge(ref.folder.toString, ref.numFiles, needed, limit)
    }
  }

  /** Throws unless `actual`, the checksum of the bytes that were read, matches the pointer's. */
  def checksum(ref: SnapshotRef, actual: Long): Unit =
    if (actual != ref.checksum) {
      throw new IllegalStateException("its checksum differs from the checksum in its pointer")
    }

  /**
   * Throws unless the checksum of the snapshot's file matches the checksum in the pointer.
   * Parquet's own checksums cover only values, not the offsets and encodings needed to find and
   * decode them. The process remembers up to 1,000 snapshots that have passed this check and does
   * not check them again.
   */
  def intact(hadoopConf: Configuration, ref: SnapshotRef): Unit = {
    entries(ref)
    if (known.getIfPresent(ref) == null) {
      val path = ref.dataFile
      checksum(ref, SnapshotFiles.checksum(path.getFileSystem(hadoopConf), path))
      known.put(ref, java.lang.Boolean.TRUE)
    }
  }

  /** The physical types of the values in a column, which may be a list. */
  private def leaves(column: Type): Seq[PrimitiveTypeName] =
    if (column.isPrimitive) Seq(column.asPrimitiveType.getPrimitiveTypeName)
    else column.asGroupType.getFields.asScala.toSeq.flatMap(leaves(_))

  /**
   * Throws unless Spark's Parquet reader can read the columns of `schema`, and every column is
   * compressed with a codec that pyzorder's writers use.
   */
  def readable(input: InputFile, schema: StructType): Unit =
    SnapshotReader.reading(input) { reader =>
      for (group <- reader.getRowGroups.asScala; column <- group.getColumns.asScala)
        SnapshotPages.check(column.getCodec)
      val found = reader.getFooter.getFileMetaData.getSchema
      def isReadable(expected: Type): Boolean =
        if (!found.containsField(expected.getName)) !expected.isRepetition(Type.Repetition.REQUIRED)
        else {
          val actual = found.getType(found.getFieldIndex(expected.getName))
          actual.isPrimitive == expected.isPrimitive && leaves(actual) == leaves(expected)
        }
      val converter = new SparkToParquetSchemaConverter(
        writeLegacyParquetFormat = false,
        outputTimestampType = SQLConf.ParquetOutputTimestampType.TIMESTAMP_MICROS)
      converter.convert(schema).getFields.asScala.filterNot(isReadable).foreach { field =>
        throw new IllegalStateException(
          s"column ${field.getName} is missing or has an unexpected type")
      }
    }
}
