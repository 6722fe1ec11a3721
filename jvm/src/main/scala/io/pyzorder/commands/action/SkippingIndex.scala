package io.pyzorder.commands.action

import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.{ResolvedTable, TableFiles}
import io.pyzorder.common.{ZOrderConf, ZOrderErrors}
import io.pyzorder.index.collect.{Collector, SketchedColumns}
import io.pyzorder.index.model.{DeniedColumns, FileEntry, IndexedColumn, IndexedColumns}
import io.pyzorder.index.store.{Coverage, IndexStore, SnapshotRef}
import io.pyzorder.storage.{FailPoints, FileRef, TableFolder}

/** Operations on a table's index that several commands share. */
private[commands] object SkippingIndex {

  def latest(session: shim.SparkSession, table: ResolvedTable): Option[SnapshotRef] =
    IndexStore.latest(session.sessionState.newHadoopConf(), new TableFolder(table.root))

  def required(session: shim.SparkSession, table: ResolvedTable): SnapshotRef =
    latest(session, table).getOrElse(throw ZOrderErrors.indexNotFound(table.name))

  /** The columns to index if the statement does not name any. */
  def default(session: shim.SparkSession, table: ResolvedTable): Seq[IndexedColumn] = {
    val conf = session.sessionState.conf
    val denied = DeniedColumns.of(conf, table.properties)
    IndexedColumns.default(table.fileSchema, Int.MaxValue).filterNot(denied(_))
      .take(ZOrderConf.indexMaxColumns.get(conf, table.properties))
  }

  /**
   * The columns that a refresh indexes; None if there is no index. A refresh indexes the same
   * columns as before, even if the index is unusable. If the type of a column has changed, its
   * current type is used. If the table no longer has any of the columns, the default columns are
   * indexed.
   */
  def columnsToRefresh(
      session: shim.SparkSession,
      table: ResolvedTable): Option[Seq[IndexedColumn]] = {
    val hadoopConf = session.sessionState.newHadoopConf()
    IndexStore.lastColumns(hadoopConf, new TableFolder(table.root)).map { had =>
      val own = had.flatMap(column =>
        IndexedColumns.fieldsOf(table.fileSchema, column.path, _ == _)
          .map(_.last.dataType).filter(IndexedColumns.supports)
          .map(now => column.path -> column.copy(dataType = now))).toMap
      if (own.isEmpty) default(session, table)
      else had.map(column => own.getOrElse(column.path, column)).distinct
    }
  }

  /** The entries whose path, size and modification time match one of the files. */
  def valid(entries: Seq[FileEntry], files: Seq[FileRef]): Seq[FileEntry] = {
    val now = files.toSet
    entries.filter(entry => now(entry.file))
  }

  /**
   * Collects entries for the files without a valid entry, and publishes the entries of all files.
   *
   * @param named the names of the columns for which sketches of new files are collected. If None,
   *              these are the columns that have sketches in the existing index or, if there are
   *              none, columns that are chosen automatically
   */
  def update(
      session: shim.SparkSession,
      table: ResolvedTable,
      asked: Seq[IndexedColumn],
      named: Option[Seq[String]] = None): Unit = {
    val denied = DeniedColumns.of(session.sessionState.conf, table.properties)
    val columns = asked.filterNot(denied(_))
    val ref = latest(session, table)
    val snapshot = ref.flatMap(IndexStore.load(session, _))
    val sketched = named.orElse(ref.flatMap(_.sketched))
    val (files, listed) =
      TableFiles.listed(session, table)(TableFiles.list(session, table))(identity)
    val known =
      if (snapshot.exists(from => columns.forall(from.columns.contains)))
        valid(snapshot.toSeq.flatMap(_.entries), files).map(_.path).toSet
      else Set.empty[String]
    val missing = files.filterNot(file => known(file.path))
    val collected = Collector.collect(
      session, TableFiles.toIndex(session, table, missing), columns,
      SketchedColumns.of(sketched.getOrElse(Nil), session.sessionState.conf, table.properties))
    FailPoints.reach(session.sessionState.conf, "index-collected")
    val fresh = collected.map(_.path).toSet
    IndexStore.publish(
      session,
      new TableFolder(table.root),
      _ => columns,
      _.filterNot(entry => fresh(entry.path) || listed.gone(entry.file)) ++ collected,
      table.properties,
      coverage = Coverage.of(listed, _, _),
      sketched = _ => sketched)
    if (sketched.isEmpty) ChosenSketches.add(session, table)
  }
}
