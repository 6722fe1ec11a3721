package io.pyzorder.index.memory

import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.types.{StructField, StructType}

import io.pyzorder.index.model.{ColumnStatistics, ExpressionColumn, FileEntry, FileSketches}
import io.pyzorder.index.model.{IndexedColumn, IndexedColumns, ReadSettings, ZValueColumn}
import io.pyzorder.index.sketch.Sketches
import io.pyzorder.storage.{FileRef, TableFolder}

/**
 * An immutable state of the index table, kept in the driver's memory. It has one entry per data
 * file. The statistics of a column are read from the snapshot's bytes on first use.
 *
 * @param columns the columns that have statistics
 * @param files   the properties of the files, except for column statistics
 * @param loader  loads a column's arrays, or warns and returns None if they cannot be read
 * @param readPaths reads the files' paths, relative to the table's folder. They are not cached
 * @param grown   called after a column has been loaded
 * @param checkObjects throws if objects for all entries would take too much memory
 * @param sketches looks up values in the files' sketches
 */
final class IndexSnapshot(
    val columns: Seq[IndexedColumn],
    files: FileArrays,
    loader: IndexedColumn => Option[ColumnArrays],
    readPaths: () => Array[String],
    grown: () => Unit = () => (),
    checkObjects: () => Unit = () => (),
    val sketches: Sketches = Sketches.None) {

  private val loaded = new ConcurrentHashMap[Seq[String], Option[ColumnArrays]]()

  def numFiles: Int = files.paths.length

  /**
   * The position of the entry for a path relative to the table's folder, or -1 if there is none.
   */
  def find(relativePath: String): Int = files.paths.find(relativePath)

  /** The files' paths, relative to the table's folder. Each call reads them from the snapshot. */
  def paths(): Array[String] = readPaths()

  def size(i: Int): Long = files.sizes(i)

  def modificationTime(i: Int): Long = files.modificationTimes(i)

  def numRecords(i: Int): Long = files.numRecords(i)

  def clusteredBy(i: Int): Seq[String] = files.clusteredBy(i)

  /**
   * The settings under which the statistics of entry i were collected. Entries with equal settings
   * share one object.
   */
  def readSettings(i: Int): ReadSettings = files.readSettings(i)

  /**
   * The arrays of the column with exactly this path; None if the column is not indexed or cannot be
   * read.
   */
  def column(path: Seq[String]): Option[ColumnArrays] =
    columns.find(_.path == path).flatMap { column =>
      val known = loaded.get(path)
      if (known != null) {
        known
      } else {
        val arrays = loader(column)
        loaded.put(path, arrays)
        grown()
        arrays
      }
    }

  /**
   * The part of a column's arrays that a scan with `schema` may use; None if the scan may not use
   * any of them. The arrays of a ZValueColumn or ExpressionColumn are returned unless the schema
   * has a column with the same name.
   *
   * The column must have the same type in the scan as in the index; otherwise, the order or the
   * values may differ. In two cases, the same type is not enough:
   * - The field has a default, which applies to files without the field. If an entry was collected
   *   before the default was added, it does not distinguish a file without the field from a file
   *   that stores nulls. The column's statistics are therefore treated as unknown for files in
   *   which the column is always null.
   * - The field is CHAR. Predicates apply to padded values, but the bounds may come from unpadded
   *   values, and padding does not preserve order. Therefore, only null counts are used.
   *
   * @param schema        the relation's data schema, including its fields' metadata
   * @param path          the names, spelled as in the schema
   * @param caseSensitive whether the scan compares names case-sensitively
   */
  def columnFor(
      schema: StructType,
      path: Seq[String],
      caseSensitive: Boolean): Option[ColumnArrays] =
    resolve(schema, path, caseSensitive).flatMap { case (column, fields) =>
      this.column(column.path).map(arrays => guarded(arrays, fields))
    }

  /** The column that `columnFor` would load, or None if there is none. */
  def indexedFor(
      schema: StructType,
      path: Seq[String],
      caseSensitive: Boolean): Option[IndexedColumn] =
    resolve(schema, path, caseSensitive).map(_._1)

  /**
   * Whether the file of entry i may contain a value with one of these hashes in the column. False
   * only if a sketch proves that it does not. The result is valid for the same scans as the entry's
   * bounds.
   *
   * @param hashes the hashes, in unsigned order
   */
  def mayHold(i: Int, column: IndexedColumn, hashes: Array[Long]): Boolean =
    files.sketches(i) match {
      case FileSketches.Missing => true
      case stored => sketches.mayHold(stored, column, hashes)
    }

  /**
   * Tests entries with a list of the column's values. The returned function is false only if the
   * list contains no value that passes the test. None if no entry can have such a list. The result
   * is valid for the same scans as the entries' bounds.
   *
   * @param test   identifies the test: equal objects stand for the same test
   * @param passes the test; its argument is never null
   */
  def someValue(
      column: IndexedColumn,
      test: AnyRef,
      passes: Any => Boolean): Option[Int => Boolean] =
    sketches.someValue(column, test, passes).map(test => i => test(files.sketches(i)))

  /**
   * Reads an entry's list of the column's distinct values, without null. The returned function is
   * None if there is none. The result is valid for the same scans as the entries' bounds.
   */
  def valuesOf(column: IndexedColumn): Option[Int => Option[Seq[Any]]] =
    sketches.valuesOf(column).map(read => i => read(files.sketches(i)))

  private def resolve(
      schema: StructType,
      path: Seq[String],
      caseSensitive: Boolean): Option[(IndexedColumn, Seq[StructField])] = {
    def same(a: String, b: String): Boolean = if (caseSensitive) a == b else a.equalsIgnoreCase(b)
    val computed = columns.find(column => column.path == path && isComputed(column))
    val candidates = columns.filter(column =>
      column.path.length == path.length &&
        column.path.zip(path).forall { case (a, b) => same(a, b) })
    (candidates, IndexedColumns.fieldsOf(schema, path, same)) match {
      case (_, None) if computed.isDefined => computed.map(column => (column, Nil))
      case (Seq(column), Some(fields))
          if fields.last.dataType == column.dataType && !ExpressionColumn.matches(column) =>
        Some((column, fields))
      case _ => None
    }
  }

  private def isComputed(column: IndexedColumn): Boolean =
    ZValueColumn.unapply(column).isDefined || ExpressionColumn.matches(column)

  private def guarded(arrays: ColumnArrays, fields: Seq[StructField]): ColumnArrays = {
    val typed =
      if (fields.lastOption.exists(IndexedColumns.isChar)) arrays.withoutBounds else arrays
    if (fields.exists(IndexedColumns.hasDefault)) typed.withoutAllNull else typed
  }

  /** The approximate heap size in bytes of everything loaded so far. */
  def estimatedBytes: Long = {
    var bytes = files.estimatedBytes
    loaded.values().forEach(column => column.foreach(bytes += _.estimatedBytes))
    bytes
  }

  /** The files that the entries describe, in the order of the entries. */
  def described: Iterator[FileRef] = {
    checkObjects()
    val names = paths()
    names.indices.iterator.map(i => FileRef(names(i), size(i), modificationTime(i)))
  }

  /**
   * The entries as objects, for code that changes the index. Entries with invalid file names are
   * left out.
   */
  def entries: Seq[FileEntry] = {
    checkObjects()
    val arrays = columns.flatMap(c => column(c.path).map(c.name -> _))
    val names = paths()
    (0 until numFiles).filterNot(i => TableFolder.leaves(names(i))).map { i =>
      FileEntry(
        path = names(i),
        size = size(i),
        modificationTime = modificationTime(i),
        numRecords = numRecords(i),
        clusteredBy = clusteredBy(i),
        readSettings = readSettings(i).fingerprint,
        statistics = arrays.map { case (name, column) => name -> column.statistics(i) }.toMap,
        sketches = files.sketches(i))
    }
  }
}

/**
 * The properties of the files in an index snapshot, except for column statistics. File i is at
 * index i of every array.
 */
final class FileArrays(
    val paths: PathTable,
    val sizes: PackedLongs,
    val modificationTimes: PackedLongs,
    val numRecords: PackedLongs,
    val clusteredBy: InternedValues[Seq[String]],
    val readSettings: InternedValues[ReadSettings],
    val sketches: SketchArrays) {

  /** The approximate heap size in bytes. */
  def estimatedBytes: Long =
    paths.estimatedBytes + sizes.estimatedBytes + modificationTimes.estimatedBytes +
      numRecords.estimatedBytes + clusteredBy.estimatedBytes + readSettings.estimatedBytes +
      sketches.estimatedBytes
}

object IndexSnapshot {

  /** An index without files. */
  val empty: IndexSnapshot = of(Nil, Nil)

  /** Creates a snapshot from entries that are already in memory. */
  def of(columns: Seq[IndexedColumn], entries: Seq[FileEntry]): IndexSnapshot = {
    val rows = entries.toArray
    val paths = new PathTable.Builder(rows.length)
    rows.indices.foreach(i => paths.set(i, rows(i).path.getBytes(UTF_8)))
    val files = new FileArrays(
      paths.result(),
      PackedLongs.of(rows.map(_.size)),
      PackedLongs.of(rows.map(_.modificationTime)),
      PackedLongs.of(rows.map(_.numRecords)),
      InternedValues.of(rows.map(_.clusteredBy))(identity[Seq[String]]),
      InternedValues.of(rows.map(_.readSettings))(ReadSettings.parse),
      SketchArrays.of(rows.map(_.sketches)))
    new IndexSnapshot(
      columns, files, column => Some(arraysOf(column, rows)), () => rows.map(_.path))
  }

  private def arraysOf(column: IndexedColumn, rows: Array[FileEntry]): ColumnArrays =
    ColumnArrays.of(
      column.dataType,
      rows.map(_.statistics.getOrElse(column.name, ColumnStatistics.unknown)))
}
