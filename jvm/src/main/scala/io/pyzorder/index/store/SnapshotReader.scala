package io.pyzorder.index.store

import java.lang.ref.SoftReference
import java.math.{BigDecimal => JBigDecimal, BigInteger}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{HashMap => JHashMap}
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.{HadoopReadOptions, ParquetReadOptions}
import org.apache.parquet.column.ColumnReader
import org.apache.parquet.column.impl.ColumnReadStoreImpl
import org.apache.parquet.example.DummyRecordConverter
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.io.{DelegatingSeekableInputStream, InputFile, SeekableInputStream}
import org.apache.parquet.io.api.Binary
import org.apache.parquet.schema.MessageType
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import scala.jdk.CollectionConverters._

import io.pyzorder.common.ReadFailure
import io.pyzorder.index.memory.{BoundArrays, BoundsBuilder, ColumnArrays, DoubleBoundsBuilder}
import io.pyzorder.index.memory.{FileArrays, InternedValues, LongBoundsBuilder, ObjectBoundsBuilder}
import io.pyzorder.index.memory.{PackedLongs, PathTable, SketchArrays}
import io.pyzorder.index.model.{IndexSchema, IndexedColumn, IndexedColumns, ReadSettings}
import io.pyzorder.storage.TableFolder

/**
 * Reads a snapshot's Parquet file into primitive arrays, column by column. Requires no Spark job.
 * Ignores session settings, because the format alone determines the values.
 *
 * @param input    opens the file for each read
 * @param numFiles the number of rows to read
 * @param only     the only row group to read, or None for all
 * @param ignored  called for each entry whose path is not a valid file name. Such an entry matches
 *                 no file
 */
private[index] final class SnapshotReader(
    input: () => InputFile,
    numFiles: Int,
    only: Option[Int] = None,
    ignored: String => Unit = _ => ()) {

  /** The properties of the files, except for column statistics. */
  def files(): FileArrays = {
    groups // checks the number of rows before arrays of that length are allocated
    val text = limitedText()
    val paths = new PathTable.Builder(numFiles)
    eachInParallel(IndexSchema.Path) { (i, reader) =>
      val bytes = text(reader).getBytesUnsafe
      val path = new String(bytes, UTF_8)
      if (TableFolder.leaves(path)) ignored(path) else paths.set(i, bytes)
    }
    val settings = new InternedValues.Builder[Binary, ReadSettings](
      numFiles, text => ReadSettings.parse(text.toStringUsingUTF8))
    each(IndexSchema.ReadSettings)((i, reader) => settings.set(i, text(reader)))
    new FileArrays(
      paths.result(),
      longs(IndexSchema.Size),
      longs(IndexSchema.ModificationTime),
      longs(IndexSchema.NumRecords),
      lists(IndexSchema.ClusteredBy),
      settings.result(),
      sketches())
  }

  /**
   * The locations of the files' sketches. Snapshots written by earlier versions of pyzorder lack
   * the columns for these locations.
   */
  private def sketches(): SketchArrays = {
    val segments = Array.fill(numFiles)("")
    val numbers = new Array[Long](numFiles)
    val text = limitedText()
    if (has(IndexSchema.SketchFile) && has(IndexSchema.SketchNumber)) {
      val known = new JHashMap[Binary, String]()
      each(IndexSchema.SketchFile)((i, reader) =>
        segments(i) =
          known.computeIfAbsent(text(reader), (name: Binary) => name.toStringUsingUTF8))
      eachInParallel(IndexSchema.SketchNumber)((i, reader) => numbers(i) = reader.getInteger.toLong)
    }
    SketchArrays.of(segments, numbers)
  }

  private def has(name: String): Boolean =
    reading(_.getFooter.getFileMetaData.getSchema.containsField(name))

  /** The files' paths. `files` keeps only the hashes of the paths. */
  def paths(): Array[String] = {
    val values = new Array[String](numFiles)
    val text = limitedText()
    eachInParallel(IndexSchema.Path)((i, reader) => values(i) = text(reader).toStringUsingUTF8)
    values
  }

  /**
   * Reads strings, and throws if all of them together are much longer than the file. Dictionaries
   * and compression let a small forged file repeat a long string any number of times.
   */
  private def limitedText(): ColumnReader => Binary = {
    val left = new AtomicLong(SnapshotReader.textLimit(input().getLength))
    reader => {
      val value = reader.getBinary
      if (left.addAndGet(-value.length) < 0)
        throw new IllegalStateException("it has more text than a file of its size can have")
      value
    }
  }

  /** One column's statistics. */
  def column(column: IndexedColumn): ColumnArrays = {
    val flags = new Array[Byte](numFiles)
    val nullCounts = Array.fill(numFiles)(-1L)
    val bounds = BoundArrays.builder(column.dataType, numFiles)
    eachInParallel(IndexSchema.numNulls(column))((i, reader) => nullCounts(i) = reader.getLong)
    readBounds(column, bounds, flags)
    def flag(name: String, bit: Byte): Unit =
      eachInParallel(name) { (i, reader) =>
        if (reader.getBoolean) flags(i) = (flags(i) | bit).toByte
      }
    if (IndexSchema.hasNan(column.dataType)) flag(IndexSchema.nanSeen(column), ColumnArrays.NanSeen)
    flag(IndexSchema.exact(column), ColumnArrays.Exact)
    flag(IndexSchema.empty(column), ColumnArrays.Empty)
    flag(IndexSchema.settingsDependent(column), ColumnArrays.SettingsDependent)
    new ColumnArrays(column.dataType, flags, PackedLongs.of(nullCounts), bounds.result())
  }

  /** Reads the bounds. A file has the flag Bounded only if both bounds are present. */
  private def readBounds(column: IndexedColumn, bounds: BoundsBuilder, flags: Array[Byte]): Unit = {
    val seen = new Array[Byte](numFiles)
    def fill(name: String)(set: (Int, ColumnReader) => Unit): Unit =
      eachInParallel(name) { (i, reader) =>
        set(i, reader)
        seen(i) = (seen(i) + 1).toByte
      }
    val (least, greatest) = (IndexSchema.minValue(column), IndexSchema.maxValue(column))
    bounds match {
      case longs: LongBoundsBuilder =>
        val read = SnapshotReader.longOf(column.dataType)
        fill(least)((i, reader) => longs.mins(i) = read(reader))
        fill(greatest)((i, reader) => longs.maxs(i) = read(reader))
      case doubles: DoubleBoundsBuilder =>
        val read = SnapshotReader.doubleOf(column.dataType)
        fill(least)((i, reader) => doubles.mins(i) = read(reader))
        fill(greatest)((i, reader) => doubles.maxs(i) = read(reader))
      case objects: ObjectBoundsBuilder =>
        val read = SnapshotReader.objectOf(column.dataType)
        fill(least)((i, reader) => objects.mins(i) = read(reader))
        fill(greatest)((i, reader) => objects.maxs(i) = read(reader))
    }
    var i = 0
    while (i < numFiles) {
      if (seen(i) == 2) flags(i) = (flags(i) | ColumnArrays.Bounded).toByte
      i += 1
    }
  }

  private def longs(name: String): PackedLongs = {
    val values = new Array[Long](numFiles)
    eachInParallel(name)((i, reader) => values(i) = reader.getLong)
    PackedLongs.of(values)
  }

  private def lists(name: String): InternedValues[Seq[String]] = {
    val text = limitedText()
    val values = new InternedValues.Builder[Seq[Binary], Seq[String]](
      numFiles, list => list.map(_.toStringUsingUTF8))
    val list = ArrayBuffer.empty[Binary]
    var current = 0
    def goOnTo(file: Int): Unit = while (current < file) {
      values.set(current, list.toList)
      list.clear()
      current += 1
    }
    each(name) { (i, reader) =>
      goOnTo(i)
      if (list.length == SnapshotReader.MaxListLength)
        throw new IllegalStateException(
          s"column $name has a list of more than ${SnapshotReader.MaxListLength} values")
      list += text(reader)
    }
    goOnTo(numFiles)
    values.result()
  }

  /**
   * Idle readers of the file, if the file is in memory. They are reused because parsing the footer
   * again for each column would take time quadratic in the number of columns.
   */
  private var idle = new SoftReference[ConcurrentLinkedQueue[ParquetFileReader]](null)

  private def reading[T](read: ParquetFileReader => T): T = input() match {
    case bytes: MemoryInputFile =>
      val readers = synchronized {
        Option(idle.get).getOrElse {
          val none = new ConcurrentLinkedQueue[ParquetFileReader]()
          idle = new SoftReference(none)
          none
        }
      }
      SnapshotReader.decoding {
        val reader = Option(readers.poll()).getOrElse(SnapshotReader.open(bytes))
        val result = read(reader)
        readers.add(reader)
        result
      }
    case file => SnapshotReader.reading(file)(read)
  }

  /** The row groups to read: the ordinal of each, paired with the ordinal of its first entry. */
  private lazy val groups: Seq[(Int, Int)] = {
    val rows = SnapshotReader.rowGroups(input())
    val numbers = only.fold(rows.indices: Seq[Int])(Seq(_))
    val found = numbers.map(rows(_).toLong).sum
    if (found != numFiles)
      throw new IllegalStateException(s"it has $found rows instead of $numFiles")
    numbers.zip(numbers.scanLeft(0)(_ + rows(_))).filter { case (number, _) => rows(number) > 0 }
  }

  /**
   * Calls `take` for every non-null value of the column, in order, with the ordinal of its file.
   */
  private def each(name: String)(take: (Int, ColumnReader) => Unit): Unit =
    reading(reader =>
      groups.foreach { case (group, first) => read(reader, name, group, first, take) })

  /**
   * Like `each`, but reads several row groups in parallel. Several threads may therefore call
   * `take` for different files at the same time.
   */
  private def eachInParallel(name: String)(take: (Int, ColumnReader) => Unit): Unit =
    groups.asJava.parallelStream().forEach { case (group, first) =>
      reading(read(_, name, group, first, take))
    }

  /** Calls `take` for the values of one row group. */
  private def read(
      reader: ParquetFileReader,
      name: String,
      group: Int,
      first: Int,
      take: (Int, ColumnReader) => Unit): Unit = {
    val metadata = reader.getFooter.getFileMetaData
    val schema = metadata.getSchema
    val wanted = new MessageType(schema.getName, schema.getType(schema.getFieldIndex(name)))
    reader.setRequestedSchema(wanted)
    val leaf = wanted.getColumns.get(0)
    val pages = reader.readRowGroup(group)
    val store = new ColumnReadStoreImpl(
      pages, new DummyRecordConverter(wanted).getRootConverter, wanted, metadata.getCreatedBy)
    val values = store.getColumnReader(leaf)
    val end = first + pages.getRowCount
    var file = first - 1
    var left = values.getTotalValueCount
    while (left > 0) {
      if (values.getCurrentRepetitionLevel == 0) file += 1
      if (file < first || file >= end)
        throw new IllegalStateException(s"column $name has a value without a row")
      if (values.getCurrentDefinitionLevel == leaf.getMaxDefinitionLevel) take(file, values)
      values.consume()
      left -= 1
    }
    if (file + 1 != end) {
      throw new IllegalStateException(
        s"column $name has ${file + 1 - first} rows instead of ${pages.getRowCount}")
    }
  }
}

private[index] object SnapshotReader {

  /**
   * The maximum length of a list of clustering columns. Without this limit, a forged list that
   * repeats one name could take only a few bytes in the file but exhaust the memory.
   */
  private val MaxListLength = 10000

  /** The maximum total length in bytes of a column's strings, given the length of the file. */
  private def textLimit(length: Long): Long = (16L << 20) + 64 * length

  /**
   * The maximum length of a bound. Valid bounds of strings have at most TruncatedBounds.MaxBytes
   * bytes plus one character, and z-values have 8 bytes for each of at most
   * ClusteringColumns.MaxColumns columns.
   */
  private val MaxBoundBytes = 1024

  /**
   * The maximum length of an unscaled decimal in bytes. A decimal has at most 38 digits. Arithmetic
   * with millions of digits would take minutes.
   */
  private val MaxDecimalBytes = 16

  /** The number of rows in each row group. */
  def rowGroups(input: InputFile): Seq[Int] =
    reading(input)(_.getRowGroups.asScala.map(group => Math.toIntExact(group.getRowCount)).toList)

  /** Throws unless every column is compressed with a codec that pyzorder's writers use. */
  def checkCodecs(input: InputFile): Unit = reading(input) { reader =>
    for (group <- reader.getRowGroups.asScala; column <- group.getColumns.asScala)
      SnapshotPages.check(column.getCodec)
  }

  /**
   * Opens a file and reads from it. A JVM `Error` that is caused by the file's contents becomes an
   * exception, because Spark terminates the process if a task throws such an error.
   */
  private def reading[T](input: InputFile)(read: ParquetFileReader => T): T = decoding {
    val reader = open(input)
    try read(reader)
    finally reader.close()
  }

  private def open(input: InputFile): ParquetFileReader = ParquetFileReader.open(input, options)

  private def decoding[T](read: => T): T =
    try read
    catch {
      case ReadFailure(error: Error) =>
        throw new IllegalStateException(s"it cannot be decoded: $error", error)
    }

  /**
   * Prevents Parquet from loading Hadoop's configuration files for each reader. These files would
   * have no effect here.
   */
  private val noSettings = new Configuration(false)

  private val options: ParquetReadOptions =
    HadoopReadOptions.builder(noSettings).usePageChecksumVerification(true)
      .withCodecFactory(SnapshotPages).build()

  private def longOf(dataType: DataType): ColumnReader => Long = dataType match {
    case BooleanType => reader => if (reader.getBoolean) 1L else 0L
    case ByteType | ShortType | IntegerType | DateType | _: YearMonthIntervalType =>
      reader => reader.getInteger.toLong
    case d: DecimalType if d.precision <= Decimal.MAX_INT_DIGITS =>
      reader => reader.getInteger.toLong
    case time if IndexedColumns.isTime(time) => reader => reader.getLong * 1000
    case _ => reader => reader.getLong
  }

  private def doubleOf(dataType: DataType): ColumnReader => Double =
    if (dataType == FloatType) reader => reader.getFloat.toDouble else reader => reader.getDouble

  private def objectOf(dataType: DataType): ColumnReader => AnyRef = dataType match {
    case BinaryType => reader => bound(reader)
    case d: DecimalType =>
      reader => {
        val unscaled = new BigInteger(bound(reader, MaxDecimalBytes))
        Decimal(new JBigDecimal(unscaled, d.scale), d.precision, d.scale)
      }
    case _ => reader => UTF8String.fromBytes(bound(reader))
  }

  private def bound(reader: ColumnReader, most: Int = MaxBoundBytes): Array[Byte] = {
    val value = reader.getBinary
    if (value.length > most)
      throw new IllegalStateException(
        s"a bound of ${value.length} bytes is longer than the limit of $most")
    value.getBytes
  }
}

/** Presents in-memory bytes as an input file to Parquet's reader. */
private[index] final class MemoryInputFile(bytes: Array[Byte]) extends InputFile {

  override def getLength: Long = bytes.length.toLong

  override def newStream(): SeekableInputStream = {
    val stream = new ByteArraySeek(bytes)
    new DelegatingSeekableInputStream(stream) {
      override def getPos: Long = stream.position
      override def seek(position: Long): Unit = stream.seekTo(position)
    }
  }

  private class ByteArraySeek(data: Array[Byte]) extends java.io.ByteArrayInputStream(data) {
    def position: Long = pos.toLong
    def seekTo(position: Long): Unit = pos = Math.toIntExact(position)
  }
}
