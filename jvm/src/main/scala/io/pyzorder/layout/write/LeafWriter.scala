package io.pyzorder.layout.write

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeRow}
import org.apache.spark.sql.types.StructType

import io.pyzorder.index.collect.{SketchedColumns, StatisticsTracker}
import io.pyzorder.index.model.{ColumnStatistics, IndexedColumn}
import io.pyzorder.index.sketch.ColumnSketch
import io.pyzorder.storage.TableFolder

/**
 * A new, unpublished file in the staging folder.
 *
 * @param stagedPath its current path
 * @param path       its future path in the table, in the form that TableFolder.relativize returns
 * @param size       its size in bytes
 * @param numRecords its number of rows
 * @param statistics the statistics of each column, keyed by IndexedColumn.name
 * @param sketches   the columns' sketches, keyed by IndexedColumn.name
 */
final case class WrittenFile(
    stagedPath: String,
    path: String,
    size: Long,
    numRecords: Long,
    statistics: Map[String, ColumnStatistics],
    sketches: Map[String, ColumnSketch])

/**
 * Writes the rows of one task to one file in the staging folder. Each attempt of a task uses a
 * different file name, so that only the files of successful attempts are published.
 *
 * @param writers    opens the files
 * @param schema     the files' schema
 * @param columns    the columns to collect statistics for
 * @param sketched   the columns for which sketches are collected
 * @param root       the table's folder
 * @param run        number of the command's run in the journal
 * @param folders    each file's folder, in the form that TableFolder.relativize returns
 * @param id         an id that is part of the name of every file that the command creates
 * @param millis     whether Parquet timestamps are stored in milliseconds
 * @param curve      the index column for the z-values, and the expression that computes them; None
 *                   if the rows are not sorted by z-value
 */
final class LeafWriter(
    writers: FileWriters,
    schema: StructType,
    columns: Seq[IndexedColumn],
    sketched: SketchedColumns,
    format: String,
    millis: Boolean,
    root: String,
    run: Long,
    folders: Array[String],
    id: String,
    curve: Option[(IndexedColumn, Expression)])
    extends Serializable {

  /** Writes file number `leaf`. Returns None if there are no rows. */
  def write(leaf: Int, rows: Iterator[InternalRow]): Option[WrittenFile] =
    if (!rows.hasNext) None
    else {
      val attempt = TaskContext.get().taskAttemptId()
      val name = f"part-$leaf%05d-$id-a$attempt" + writers.extension
      val relative = if (folders(leaf).isEmpty) name else s"${folders(leaf)}/$name"
      val table = new TableFolder(new Path(root))
      val staged = table.stagedPath(run, relative)
      val along = curve.map { case (column, zValue) => new ZValueTracker(column, zValue) }
      val writer = writers.stage(table, staged, leaf)
      val tracker = writer match {
        case flat: FlatParquetWriter =>
          new StatisticsTracker(columns, schema, flat.holdsBytes, sketched)
        case _ => new StatisticsTracker(columns, schema, sketched = sketched)
      }
      try {
        while (rows.hasNext) {
          val row = rows.next()
          tracker.update(row)
          along.foreach(_.update(row))
          writer.write(row)
        }
        writer.close()
        writer match {
          case flat: FlatParquetWriter => tracker.addFromWriter(flat.bytesIn)
          case _ =>
        }
      } catch {
        case NonFatal(failure) =>
          FileWriters.afterFailure(failure)(
            () => writer.close(),
            () => writers.discard(table, staged))
          throw failure
      }
      val size = writers.fileSystem(staged).getFileStatus(staged).getLen
      Some(WrittenFile(
          staged.toString,
          relative,
          size,
          tracker.numRecords,
          tracker.written(format, millis) ++ along.flatMap(_.result),
          tracker.writtenSketches(millis, Some(size))))
    }
}

/** Keeps the first and last z-values of rows that are sorted by z-value. */
private final class ZValueTracker(column: IndexedColumn, zValue: Expression) {

  private var first: Array[Byte] = _
  private var last: InternalRow = _

  /** Processes the next row. The caller may reuse the row afterwards. */
  def update(row: InternalRow): Unit = {
    if (first == null) first = valueOf(row)
    (last, row) match {
      case (kept: UnsafeRow, next: UnsafeRow) => kept.copyFrom(next)
      case _ => last = row.copy()
    }
  }

  /** The column's name and statistics; None if there were no rows. */
  def result: Option[(String, ColumnStatistics)] = Option(first).map { least =>
    column.name -> ColumnStatistics(
      bounds = Some((least, valueOf(last))), exact = true, nullCount = Some(0L), nanSeen = false,
      empty = false, settingsDependent = false)
  }

  private def valueOf(row: InternalRow): Array[Byte] = zValue.eval(row).asInstanceOf[Array[Byte]]
}
