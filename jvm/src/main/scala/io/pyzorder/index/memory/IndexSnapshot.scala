package io.pyzorder.index.memory

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.types.{DataType, StructField, StructType}

import io.pyzorder.index.model.{ColumnStatistics, FileEntry, IndexedColumn, IndexedColumns}
import io.pyzorder.index.model.{ReadSettings, ZValueColumn}
import io.pyzorder.storage.TableFolder

/**
 * One immutable state of the index table, as the driver holds it: one entry a data file, the
 * columns' statistics read from the snapshot's bytes when they are first asked for.
 *
 * @param columns the columns that have statistics
 * @param files   what is known of each file beside its columns
 * @param loader  a column's arrays; None: it cannot be read (which the loader has told the user)
 * @param paths   the files' paths relative to the table's folder, read anew each time
 * @param grown   called when a column has been loaded
 */
final class IndexSnapshot(
    val columns: Seq[IndexedColumn],
    files: FileArrays,
    loader: IndexedColumn => Option[ColumnArrays],
    paths: () => Array[String],
    grown: () => Unit = () => ()) {

  private val loaded = new ConcurrentHashMap[Seq[String], Option[ColumnArrays]]()

  def numFiles: Int = files.paths.length

  /** The number of the entry of a file, given relative to the table's folder; -1: there is none. */
  def find(relativePath: String): Int = files.paths.find(relativePath)

  def size(i: Int): Long = files.sizes(i)

  def modificationTime(i: Int): Long = files.modificationTimes(i)

  def numRecords(i: Int): Long = files.numRecords(i)

  def clusteredBy(i: Int): Seq[String] = files.clusteredBy(i)

  /** The settings entry i was collected under; entries with equal ones share one object. */
  def readSettings(i: Int): ReadSettings = files.readSettings(i)

  /** The arrays of the column of exactly this path; None: not indexed, or unreadable. */
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
   * The arrays of a column as a scan with `schema` may use them; None: nothing may be used. Those
   * of a ZValueColumn, unless the scan has a column of that name.
   *
   * The scan must read the column as the type the bounds were read as, else their order or value
   * may be another. Two cases in which the same type is not enough:
   *  - The field has a default for files that lack it: an entry cannot tell such a file, collected
   *    by a reader who knew no default, from one of stored nulls. So files of nulls are unknown.
   *  - The field is CHAR: predicates are about padded values, bounds may be of unpadded ones, and
   *    padding does not keep the order. So only null counts are used.
   *
   * @param schema        the relation's data schema, with its fields' metadata
   * @param path          names as the schema spells them
   * @param caseSensitive whether the scan's names differ by case
   */
  def columnFor(
      schema: StructType,
      path: Seq[String],
      caseSensitive: Boolean): Option[ColumnArrays] =
    resolve(schema, path, caseSensitive).flatMap { case (column, fields) =>
      this.column(column.path).map(arrays => guarded(arrays, fields))
    }

  /** The type of the column that `columnFor` would load; None: there is none. */
  def typeFor(schema: StructType, path: Seq[String], caseSensitive: Boolean): Option[DataType] =
    resolve(schema, path, caseSensitive).map(_._1.dataType)

  private def resolve(
      schema: StructType,
      path: Seq[String],
      caseSensitive: Boolean): Option[(IndexedColumn, Seq[StructField])] = {
    def same(a: String, b: String): Boolean = if (caseSensitive) a == b else a.equalsIgnoreCase(b)
    val curve =
      columns.find(column => column.path == path && ZValueColumn.unapply(column).isDefined)
    val candidates = columns.filter(column =>
      column.path.length == path.length &&
        column.path.zip(path).forall { case (a, b) => same(a, b) })
    (candidates, IndexedColumns.fieldsOf(schema, path, same)) match {
      case (_, None) if curve.isDefined => curve.map(column => (column, Nil))
      case (Seq(column), Some(fields)) if fields.last.dataType == column.dataType =>
        Some((column, fields))
      case _ => None
    }
  }

  private def guarded(arrays: ColumnArrays, fields: Seq[StructField]): ColumnArrays = {
    val typed =
      if (fields.lastOption.exists(IndexedColumns.isChar)) arrays.withoutBounds else arrays
    if (fields.exists(IndexedColumns.hasDefault)) typed.withoutAllNull else typed
  }

  /** Bytes of all that has been loaded so far, roughly. */
  def estimatedBytes: Long = {
    var bytes = files.estimatedBytes
    loaded.values().forEach(column => column.foreach(bytes += _.estimatedBytes))
    bytes
  }

  /** The entries as objects, for those who change the index. */
  def entries: Seq[FileEntry] = {
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
        statistics = arrays.map { case (name, column) => name -> column.statistics(i) }.toMap)
    }
  }
}

/**
 * What an index snapshot keeps of each file beside its columns; file i at index i of every array.
 */
final class FileArrays(
    val paths: PathTable,
    val sizes: PackedLongs,
    val modificationTimes: PackedLongs,
    val numRecords: PackedLongs,
    val clusteredBy: InternedValues[Seq[String]],
    val readSettings: InternedValues[ReadSettings]) {

  /** Bytes this takes on the heap, roughly. */
  def estimatedBytes: Long =
    paths.estimatedBytes + sizes.estimatedBytes + modificationTimes.estimatedBytes +
      numRecords.estimatedBytes + clusteredBy.estimatedBytes + readSettings.estimatedBytes
}

object IndexSnapshot {

  /** An index without files. */
  val empty: IndexSnapshot = of(Nil, Nil)

  /** A snapshot of entries in memory. */
  def of(columns: Seq[IndexedColumn], entries: Seq[FileEntry]): IndexSnapshot = {
    val rows = entries.toArray
    val paths = new PathTable.Builder(rows.length)
    rows.indices.foreach(i => paths.set(i, rows(i).path))
    val files = new FileArrays(
      paths.result(),
      PackedLongs.of(rows.map(_.size)),
      PackedLongs.of(rows.map(_.modificationTime)),
      PackedLongs.of(rows.map(_.numRecords)),
      InternedValues.of(rows.map(_.clusteredBy))(identity[Seq[String]]),
      InternedValues.of(rows.map(_.readSettings))(ReadSettings.parse))
    new IndexSnapshot(
      columns, files, column => Some(arraysOf(column, rows)), () => rows.map(_.path))
  }

  private def arraysOf(column: IndexedColumn, rows: Array[FileEntry]): ColumnArrays =
    ColumnArrays.of(
      column.dataType,
      rows.map(_.statistics.getOrElse(column.name, ColumnStatistics.unknown)))
}
