package io.pyzorder.index.collect

import scala.util.control.NonFatal

import org.apache.spark.sql.pyzorder.shim
import org.slf4j.LoggerFactory

import io.pyzorder.index.model.{DataFiles, ExpressionColumn, FileEntry, FileSketches}
import io.pyzorder.index.model.IndexedColumn
import io.pyzorder.index.sketch.NewSketches

/**
 * Adds the statistics of an index's expressions to the entries of new files. The files are read
 * again for this, because an expression may have another value for the row that is written than for
 * the row that is read back. Examples are timestamps that are stored in milliseconds, and CHAR.
 */
object ExpressionStatistics {

  private val log = LoggerFactory.getLogger(getClass)

  /**
   * The entries, with statistics of the expressions among `columns`. If the files cannot be read,
   * the entries are returned as they are, and the files are not skipped because of expressions.
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
          log.warn(s"The expressions of new files in ${data.root} remain unindexed: " +
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
