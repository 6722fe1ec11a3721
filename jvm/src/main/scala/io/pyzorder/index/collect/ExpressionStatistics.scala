package io.pyzorder.index.collect

import scala.util.control.NonFatal

import org.apache.spark.sql.pyzorder.shim
import org.slf4j.LoggerFactory

import io.pyzorder.index.model.{DataFiles, ExpressionColumn, FileEntry, FileSketches}
import io.pyzorder.index.model.IndexedColumn
import io.pyzorder.index.sketch.NewSketches

/**
 * Adds the statistics of an index's expressions to the entries of new files. The files are read
 * again for this purpose, because an expression may have a different value after a row has been
 * written and read back. This happens, for example, if timestamps are stored in milliseconds.
 */
object ExpressionStatistics {

  private val log = LoggerFactory.getLogger(getClass)

  /**
   * Adds the statistics of the expressions among `columns` to the entries. If the files cannot be
   * read, returns the entries unchanged, and queries do not use the expressions to skip these
   * files.
   *
   * @param data    the files that the entries describe, in the same order
   * @param wanted  the columns for which sketches are collected
   */
  def added(
      session: shim.SparkSession,
      data: DataFiles,
      entries: Seq[FileEntry],
      columns: Seq[IndexedColumn],
      wanted: SketchedColumns): Seq[FileEntry] = {
    val expressions = columns.filter(ExpressionColumn.matches)
    if (expressions.isEmpty || entries.isEmpty) entries
    else {
      try {
        val found = Collector.collect(session, data, expressions, wanted)
          .map(entry => entry.path -> entry).toMap
        entries.zip(data.files).map { case (entry, file) =>
          found.get(file.path)
            .filter(now => now.numRecords == entry.numRecords)
            .filter(now => now.readSettings == entry.readSettings)
            .fold(entry)(merged(entry, _))
        }
      } catch {
        case NonFatal(failure) =>
          log.warn(s"Indexed expressions get no statistics for new files in ${data.root}: " +
            failure.getMessage)
          entries
      }
    }
  }

  private def merged(entry: FileEntry, found: FileEntry): FileEntry = entry.copy(
    statistics = entry.statistics ++ found.statistics,
    sketches = (entry.sketches, found.sketches) match {
      case (own: NewSketches, more: NewSketches) =>
        own.copy(byColumn = own.byColumn ++ more.byColumn)
      case (FileSketches.Missing, more) => more
      case (own, _) => own
    })
}
