package io.pyzorder.index.store

import java.lang.ref.SoftReference
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
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData
import org.apache.parquet.io.InputFile
import org.apache.parquet.io.api.Binary
import org.apache.parquet.schema.MessageType
import scala.jdk.CollectionConverters._

import io.pyzorder.common.ReadFailure
import io.pyzorder.index.memory.{BoundArrays, BoundsBuilder, ColumnArrays, DoubleBoundsBuilder}
import io.pyzorder.index.memory.{FileArrays, InternedValues, LongBoundsBuilder, ObjectBoundsBuilder}
import io.pyzorder.index.memory.{PackedLongs, PathTable, SketchArrays}
import io.pyzorder.index.model.{IndexSchema, IndexedColumn, ReadSettings}
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
    var known = 0
    each(IndexSchema.ReadSettings) { (i, reader) =>
      settings.set(i, text(reader))
      known += 1
    }
    if (known != numFiles) throw new IllegalStateException("a file has no read settings")
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
    eachLong(IndexSchema.numNulls(column), nullCounts)
    readBounds(column, bounds, flags)
    def flag(name: String, bit: Byte): Unit =
      inParallel { (reader, group, first, end) =>
        def set(i: Int, value: Boolean): Unit = if (value) flags(i) = (flags(i) | bit).toByte
        SnapshotReader.onlyValue(reader, name, group) match {
          case Some(Some(value: java.lang.Boolean)) => (first until end).foreach(set(_, value))
          case _ => read(reader, name, group, first, (i, values) => set(i, values.getBoolean))
        }
      }
    if (IndexSchema.hasNan(column.dataType)) flag(IndexSchema.nanSeen(column), ColumnArrays.NanSeen)
    flag(IndexSchema.exact(column), ColumnArrays.Exact)
    flag(IndexSchema.empty(column), ColumnArrays.Empty)
    flag(IndexSchema.settingsDependent(column), ColumnArrays.SettingsDependent)
    new ColumnArrays(column.dataType, flags, PackedLongs.of(nullCounts), bounds.result())
  }

  /**
   * Reads the bounds. A file has the flag Bounded only if both bounds are present and in order, as
   * code that compares bounds expects.
   */
  private def readBounds(column: IndexedColumn, bounds: BoundsBuilder, flags: Array[Byte]): Unit = {
    val seen = new Array[Byte](numFiles)
    def fill(name: String)(set: SnapshotReader.Take): Unit =
      eachInParallel(name) { (i, reader) =>
        set(i, reader)
        seen(i) = (seen(i) + 1).toByte
      }
    val (least, greatest) = (IndexSchema.minValue(column), IndexSchema.maxValue(column))
    bounds match {
      case longs: LongBoundsBuilder =>
        val read = SnapshotBounds.longOf(column.dataType)
        fill(least)((i, reader) => longs.mins(i) = read(reader))
        fill(greatest)((i, reader) => longs.maxs(i) = read(reader))
      case doubles: DoubleBoundsBuilder =>
        val read = SnapshotBounds.doubleOf(column.dataType)
        fill(least)((i, reader) => doubles.mins(i) = read(reader))
        fill(greatest)((i, reader) => doubles.maxs(i) = read(reader))
      case objects: ObjectBoundsBuilder =>
        val read = SnapshotBounds.objectOf(column.dataType)
        fill(least)((i, reader) => objects.mins(i) = read(reader))
        fill(greatest)((i, reader) => objects.maxs(i) = read(reader))
    }
    var i = 0
    while (i < numFiles) {
      if (seen(i) == 2 && bounds.inOrder(i)) flags(i) = (flags(i) | ColumnArrays.Bounded).toByte
      i += 1
    }
  }

  private def longs(name: String): PackedLongs = {
    val values = new Array[Long](numFiles)
    eachLong(name, values)
    PackedLongs.of(values)
  }

  private def eachLong(name: String, result: Array[Long]): Unit =
    inParallel { (reader, group, first, end) =>
      SnapshotReader.onlyValue(reader, name, group) match {
        case Some(Some(value: java.lang.Long)) => java.util.Arrays.fill(result, first, end, value)
        case _ => read(reader, name, group, first, (i, values) => result(i) = values.getLong)
      }
    }

  private def lists(name: String): InternedValues[Seq[String]] = {
    val text = limitedText()
    val values = new InternedValues.Builder[Seq[Binary], Seq[String]](
      numFiles, list => list.map(_.toStringUsingUTF8))
    val list = ArrayBuffer.empty[Binary]
    var last = List.empty[Binary]
    var current = 0
    def goOnTo(file: Int): Unit = while (current < file) {
      if (!list.corresponds(last)(_ eq _)) last = list.toList
      values.set(current, last)
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
  private def each(name: String)(take: SnapshotReader.Take): Unit =
    reading(reader =>
      groups.foreach { case (group, first) => read(reader, name, group, first, take) })

  /**
   * Like `each`, but reads several row groups in parallel. Several threads may therefore call
   * `take` for different files at the same time.
   */
  private def eachInParallel(name: String)(take: SnapshotReader.Take): Unit =
    inParallel((reader, group, first, _) => read(reader, name, group, first, take))

  /**
   * Calls `readGroup` for every row group with its ordinal, the ordinal of its first entry, and the
   * ordinal after its last entry. Several threads may call `readGroup` at the same time.
   */
  private def inParallel(readGroup: (ParquetFileReader, Int, Int, Int) => Unit): Unit = {
    val ends = groups.map(_._2).drop(1) :+ numFiles
    groups.zip(ends).asJava.parallelStream().forEach { case ((group, first), end) =>
      reading(readGroup(_, group, first, end))
    }
  }

  /** Calls `take` for the non-null values of one row group. */
  private def read(
      reader: ParquetFileReader,
      name: String,
      group: Int,
      first: Int,
      take: SnapshotReader.Take): Unit =
    if (!SnapshotReader.onlyValue(reader, name, group).contains(None))
      decode(reader, name, group, first, take)

  private def decode(
      reader: ParquetFileReader,
      name: String,
      group: Int,
      first: Int,
      take: SnapshotReader.Take): Unit = {
    val metadata = reader.getFooter.getFileMetaData
    val schema = metadata.getSchema
    val wanted = new MessageType(schema.getName, schema.getType(schema.getFieldIndex(name)))
    reader.setRequestedSchema(wanted)
    val leaf = wanted.getColumns.get(0)
    SnapshotReader.chunkOf(reader, name, group).foreach(SnapshotPages.checkLengths(input(), _))
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
   * Takes the value at the column reader's position, which belongs to file i. Unlike a function,
   * this does not box i.
   */
  private trait Take {
    def apply(i: Int, value: ColumnReader): Unit
  }

  /**
   * The maximum length of a list of clustering columns. Without this limit, a forged list that
   * repeats one name could take only a few bytes in the file but exhaust the memory.
   */
  private val MaxListLength = 10000

  /** The maximum total length in bytes of a column's strings, given the length of the file. */
  private def textLimit(length: Long): Long = (16L << 20) + 64 * length

  /** The number of rows in each row group. */
  def rowGroups(input: InputFile): Seq[Int] =
    reading(input)(_.getRowGroups.asScala.map(group => Math.toIntExact(group.getRowCount)).toList)

  /** The part of a row group that contains a column, which may be a list. */
  private def chunkOf(
      reader: ParquetFileReader,
      name: String,
      group: Int): Option[ColumnChunkMetaData] =
    reader.getRowGroups.get(group).getColumns.asScala.find(_.getPath.toArray.head == name)

  /**
   * The value of a column in every row of a row group; None for null. Empty if the footer does not
   * say that all rows have the same value.
   */
  private def onlyValue(
      reader: ParquetFileReader,
      name: String,
      group: Int): Option[Option[Any]] = {
    val rows = reader.getRowGroups.get(group).getRowCount
    chunkOf(reader, name, group).filter(_.getValueCount == rows).map(_.getStatistics)
      .filter(_.isNumNullsSet).collect {
        case known if known.getNumNulls == rows => None
        case known
            if known.getNumNulls == 0 && known.hasNonNullValue &&
              known.genericGetMin == known.genericGetMax => Some(known.genericGetMin)
      }
  }

  /**
   * Opens a file and reads from it. A JVM `Error` that is caused by the file's contents becomes an
   * exception, because Spark terminates the process if a task throws such an error.
   */
  private[store] def reading[T](input: InputFile)(read: ParquetFileReader => T): T = decoding {
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
}
