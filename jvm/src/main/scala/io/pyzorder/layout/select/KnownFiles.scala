package io.pyzorder.layout.select

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.types.DataType

import io.pyzorder.index.memory.{ColumnArrays, IndexSnapshot}
import io.pyzorder.index.model.{ColumnStatistics, IndexedColumn}
import io.pyzorder.layout.cells.FileBox
import io.pyzorder.storage.{FileRef, TableFolder}

/**
 * The statistics that describe how a table's files are laid out. They come from the index or, for
 * files without a valid entry there, from the files themselves.
 *
 * @param columns the clustering columns, in order
 * @param index   the table's index; None if the table has no index
 * @param collect collects statistics of the clustering columns from the given files, and returns
 *                them keyed by the files' paths in the table. Files that cannot be read are missing
 *                from the result
 */
final class KnownFiles(
    table: TableFolder,
    columns: Seq[IndexedColumn],
    index: Option[IndexSnapshot],
    collect: Seq[FileRef] => Map[String, Seq[ColumnStatistics]]) {

  private val names = columns.map(_.label)

  private lazy val arrays: Seq[Option[ColumnArrays]] =
    columns.map(column =>
      index.flatMap(_.column(column.path)).filter(_.dataType == column.dataType))

  /** The types of the clustering columns. */
  val types: Seq[DataType] = columns.map(_.dataType)

  /** Whether the file was clustered by exactly these columns when it was written. */
  def isClustered(file: FileStatus): Boolean =
    entryOf(file).exists(entry => index.exists(_.clusteredBy(entry) == names))

  /** Whether the index has bounds for every clustering column that has values in the file. */
  def isIndexed(file: FileStatus): Boolean = entryOf(file).exists { entry =>
    indexed(entry).forall(column => column.bounds.isDefined || column.empty)
  }

  /** Returns the files as boxes, in the same order. Runs at most one job. */
  def boxes(files: Seq[FileStatus]): IndexedSeq[FileBox] = {
    val unknown = files.filter(entryOf(_).isEmpty).map(PartitionListing.refOf(table, _))
    val collected =
      if (unknown.isEmpty) Map.empty[String, Seq[ColumnStatistics]] else collect(unknown)
    files.map { file =>
      val statistics = entryOf(file).map(indexed)
        .orElse(collected.get(table.relativize(file.getPath)))
      FileBox(
        file.getLen, statistics.getOrElse(columns.map(_ => ColumnStatistics.unknown)))
    }.toIndexedSeq
  }

  private def indexed(entry: Int): Seq[ColumnStatistics] =
    arrays.map(_.map(_.statistics(entry)).getOrElse(ColumnStatistics.unknown))

  /** The position of the index entry that describes the file in its current state. */
  private def entryOf(file: FileStatus): Option[Int] = index.flatMap { entries =>
    val ref = PartitionListing.refOf(table, file)
    val entry = entries.find(ref.path)
    val valid = entry >= 0 && entries.size(entry) == ref.size &&
      entries.modificationTime(entry) == ref.modificationTime
    if (valid) Some(entry) else None
  }
}
