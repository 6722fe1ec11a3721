package io.pyzorder.commands.action

import scala.util.control.NonFatal

import org.apache.spark.sql.pyzorder.shim
import org.slf4j.LoggerFactory

import io.pyzorder.catalog.{ResolvedTable, TableFiles}
import io.pyzorder.index.collect.{Collector, SketchedColumns}
import io.pyzorder.index.model.{FileEntry, FileSketches, IndexedColumn}
import io.pyzorder.index.sketch.{NewSketches, SketchChoice, ValueHash}
import io.pyzorder.index.store.{IndexPublisher, IndexStore}
import io.pyzorder.storage.{FileRef, TableFolder}

/**
 * Chooses the columns that get sketches if no statement has named any. First, a few files are read
 * to find the columns for which sketches would skip many files that bounds cannot skip. Then these
 * columns are read from all files. From then on, writers collect sketches of these columns.
 */
private[commands] object ChosenSketches {

  private val log = LoggerFactory.getLogger(getClass)

  /** The number of files in the sample. */
  private val SampledFiles = 8

  /**
   * The minimum number of files that the index must cover. With fewer files, reading the sample
   * would cost too much, and sketches would skip too few files.
   */
  private val FewFiles = 4 * SampledFiles

  /**
   * The maximum number of columns to choose. If more columns qualify, only the first ones are
   * chosen, because the key columns of a table often come first.
   */
  private val MostColumns = 8

  /**
   * Chooses columns and adds their sketches to the table's index. Does nothing if the columns have
   * already been chosen or named, if the index covers too few files, or if a column's sketches
   * might be too large to send to the driver. A failure is only logged, because an index works
   * without sketches.
   */
  def add(session: shim.SparkSession, table: ResolvedTable): Unit =
    try {
      val none = SketchedColumns.of(Nil, session.sessionState.conf, table.properties)
      for {
        ref <- SkippingIndex.latest(session, table)
        if none.budget > 0 && ref.sketched.isEmpty && ref.numFiles >= FewFiles
        indexed <- IndexStore.loadAll(session, ref)(_.entries)
        if none.allows(indexed.map(_.size).sum)
      } {
        // The index may be forged, so only files that are found by listing the table are read.
        val entries = SkippingIndex.valid(indexed, TableFiles.list(session, table))

        val columns = ref.columns.filter(c => ValueHash.of(c.dataType).isDefined)
        val step = math.max(1, entries.length / SampledFiles)
        val sample = entries.indices.by(step).take(SampledFiles).map(entries)
        val known = sketched(session, table, sample, columns, none)
        val chosen = columns.filter(pays(_, sample, known, none.budget)).take(MostColumns)
        val found =
          if (chosen.isEmpty) Map.empty[FileRef, FileEntry]
          else sketched(session, table, entries, chosen, none)
        publish(session, table, chosen.map(_.name), found)
      }
    } catch {
      case NonFatal(failure) =>
        log.warn(s"No sketches were added to the index of ${table.root}: ${failure.getMessage}")
    }

  /** New entries for the files, with sketches of the columns. */
  private def sketched(
      session: shim.SparkSession,
      table: ResolvedTable,
      entries: Seq[FileEntry],
      columns: Seq[IndexedColumn],
      none: SketchedColumns): Map[FileRef, FileEntry] =
    Collector.collect(
      session, TableFiles.toIndex(session, table, entries.map(_.file)), columns,
      none.copy(names = columns.map(_.name).toSet)).map(entry => entry.file -> entry).toMap

  private def pays(
      column: IndexedColumn,
      sample: Seq[FileEntry],
      known: Map[FileRef, FileEntry],
      budget: Double): Boolean = {
    val files = sample.flatMap(entry => known.get(entry.file)).map(entry =>
      (entry.statistics.get(column.name), entry.sketches, entry.size)).collect {
      case (Some(statistics), sketches: NewSketches, size) =>
        sketches.byColumn.get(column.name).flatMap(_.limitedTo((size * budget).toLong))
          .map((statistics, _))
    }.flatten
    SketchChoice.pays(column.dataType, files).contains(true)
  }

  /**
   * Adds the sketches to the index entries that have none and whose file, read settings and number
   * of rows have not changed.
   */
  private def publish(
      session: shim.SparkSession,
      table: ResolvedTable,
      chosen: Seq[String],
      found: Map[FileRef, FileEntry]): Unit =
    IndexPublisher.publish(
      session, new TableFolder(table.root), identity,
      _.map { entry =>
        found.get(entry.file) match {
          case Some(now)
              if entry.sketches == FileSketches.Missing &&
                now.readSettings == entry.readSettings && now.numRecords == entry.numRecords =>
            entry.copy(sketches = now.sketches)
          case _ => entry
        }
      },
      table.properties,
      coverage = (before, _) => before.flatMap(_.coverage),
      sketched = _.orElse(Some(chosen)))
}
