package io.pyzorder.commands

import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.{ClusteringColumns, ResolvedTable, TableFiles}
import io.pyzorder.commands.action.SkippingIndex
import io.pyzorder.common.{ColumnNames, ZOrderErrors}
import io.pyzorder.index.collect.Collector
import io.pyzorder.index.model.{ColumnStatistics, FileEntry, IndexedColumn, IndexedColumns}
import io.pyzorder.index.store.IndexStore
import io.pyzorder.storage.FileRef

/**
 * One data file of a layout.
 *
 * @param entry   the file's statistics; None if the file could not be read
 * @param indexed whether the index has a valid entry for the file, with statistics for all
 *                requested columns
 */
final case class LaidOutFile(file: FileRef, entry: Option[FileEntry], indexed: Boolean) {

  /** The statistics of a column in this file. */
  def statistics(column: IndexedColumn): ColumnStatistics =
    entry.flatMap(_.statistics.get(column.name)).getOrElse(ColumnStatistics.unknown)
}

/**
 * For each data file of a table, the ranges of its values in the given columns. The ranges are used
 * only for display. Statistics for files without index entries are collected in the same way as for
 * CREATE SKIPPING INDEX, but are not stored.
 *
 * @param isIndexed whether the table has a usable index
 * @param files     the files of all partitions, sorted by path
 */
final case class TableLayout(
    isIndexed: Boolean,
    columns: Seq[IndexedColumn],
    files: Seq[LaidOutFile])

object TableLayout {

  /**
   * @param names columns, written as in ZORDER BY. If empty, the files' most frequent clustering
   *              columns are used. If no file is clustered, the clustering columns that the table
   *              declares are used. If it declares none, the first two columns that can be indexed
   *              are used
   * @throws io.pyzorder.common.ZOrderException if a name is invalid, unknown, ambiguous or
   *                                            repeated, or if a column is a partition column or
   *                                            has an unsupported type
   */
  def of(session: shim.SparkSession, table: ResolvedTable, names: Seq[String]): TableLayout = {
    val files = TableFiles.list(session, table).sortBy(_.path)
    val indexed = SkippingIndex.latest(session, table)
      .flatMap(ref => IndexStore.loadAll(session, ref)(_.entries).map(ref -> _))
    val valid = indexed.toSeq.flatMap { case (_, entries) => SkippingIndex.valid(entries, files) }
    val columns =
      if (names.isEmpty) usual(session, table, valid, indexed.toSeq.flatMap(_._1.columns))
      else resolved(session, table, names.flatMap(ColumnNames.parseItems))
    val known =
      if (columns.forall(c => indexed.exists(_._1.columns.contains(c)))) byPath(valid)
      else Map.empty[String, FileEntry]
    val missing = TableFiles.toIndex(
      session, table, files.filterNot(file => known.contains(file.path)))
    val collected =
      if (missing.files.isEmpty) Map.empty[String, FileEntry]
      else byPath(Collector.collect(session, missing, columns))
    val clusteredBy = byPath(valid).map { case (path, entry) => path -> entry.clusteredBy }
    TableLayout(indexed.isDefined, columns,
      files.map { file =>
        val entry = known.get(file.path).orElse(collected.get(file.path).map(found =>
            found.copy(clusteredBy = clusteredBy.getOrElse(file.path, Nil))))
        LaidOutFile(file, entry, known.contains(file.path))
      })
  }

  private def byPath(entries: Seq[FileEntry]): Map[String, FileEntry] =
    entries.map(entry => entry.path -> entry).toMap

  private def usual(
      session: shim.SparkSession,
      table: ResolvedTable,
      valid: Seq[FileEntry],
      indexed: Seq[IndexedColumn]): Seq[IndexedColumn] = {
    val leaves = IndexedColumns.default(table.fileSchema, Int.MaxValue)
    val order = valid.map(_.clusteredBy).filter(_.nonEmpty).groupBy(identity)
      .toSeq.sortBy(-_._2.length).headOption.toSeq.flatMap(_._1)
    val clustered = order.flatMap(label => (leaves ++ indexed).find(_.label == label))
    lazy val declared = ClusteringColumns.declared(
      table.properties, table.schema.fieldNames.toSeq)
    if (clustered.nonEmpty) clustered
    else if (declared.nonEmpty) resolved(session, table, declared)
    else leaves.take(2)
  }

  private def resolved(
      session: shim.SparkSession,
      table: ResolvedTable,
      names: Seq[Either[String, Seq[String]]]): Seq[IndexedColumn] = {
    val conf = session.sessionState.conf
    val paths = names.flatMap(_.toSeq)
    paths.map(_.head).foreach { name =>
      if (table.partitionSchema.fieldNames.exists(conf.resolver(_, name))) {
        throw ZOrderErrors.partitionColumn(name)
      }
    }
    val columns =
      IndexedColumns.resolve(table.fileSchema, paths, table.name, conf.caseSensitiveAnalysis)
        .iterator
    names.map {
      case Right(_) => columns.next()
      case text => ClusteringColumns.resolve(session, table, Seq(text)).head
    }
  }
}
