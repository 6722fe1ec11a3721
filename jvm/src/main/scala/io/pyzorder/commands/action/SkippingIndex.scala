package io.pyzorder.commands.action

import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.{ResolvedTable, TableFiles}
import io.pyzorder.common.{ZOrderConf, ZOrderErrors}
import io.pyzorder.index.collect.Collector
import io.pyzorder.index.model.{DeniedColumns, FileEntry, IndexedColumn, IndexedColumns}
import io.pyzorder.index.store.{IndexStore, SnapshotRef}
import io.pyzorder.storage.{FileRef, TableFolder}

/** What the commands on an index share. */
private[commands] object SkippingIndex {

  def latest(session: shim.SparkSession, table: ResolvedTable): Option[SnapshotRef] =
    IndexStore.latest(session.sessionState.newHadoopConf(), new TableFolder(table.root))

  def required(session: shim.SparkSession, table: ResolvedTable): SnapshotRef =
    latest(session, table).getOrElse(throw ZOrderErrors.indexNotFound(table.name))

  /** The columns of an index that nobody has named any for. */
  def default(session: shim.SparkSession, table: ResolvedTable): Seq[IndexedColumn] = {
    val conf = session.sessionState.conf
    val denied = DeniedColumns.of(conf, table.properties)
    IndexedColumns.default(table.fileSchema, Int.MaxValue).filterNot(denied(_))
      .take(ZOrderConf.indexMaxColumns.get(conf, table.properties))
  }

  /**
   * The columns that the index, be it of use or not, shall have when it is brought up to date:
   * those it had, of the types that the table's columns have by now; if none is the table's, as at
   * first. None: there is no index.
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

  /** The entries that describe a file as it is now. */
  def valid(entries: Seq[FileEntry], files: Seq[FileRef]): Seq[FileEntry] = {
    val now = files.toSet
    entries.filter(e => now(FileRef(e.path, e.size, e.modificationTime)))
  }

  /** Publishes entries of every file of the table; those that are still valid are kept. */
  def update(
      session: shim.SparkSession,
      table: ResolvedTable,
      asked: Seq[IndexedColumn]): Unit = {
    val denied = DeniedColumns.of(session.sessionState.conf, table.properties)
    val columns = asked.filterNot(denied(_))
    val files = TableFiles.list(session, table)
    val known = latest(session, table).flatMap(IndexStore.load(session, _)).toSeq
      .filter(snapshot => columns.forall(snapshot.columns.contains))
      .flatMap(snapshot => valid(snapshot.entries, files)).map(_.path).toSet
    val missing = files.filterNot(file => known(file.path))
    val collected = Collector.collect(session, TableFiles.toIndex(table, missing), columns)
    val fresh = collected.map(_.path).toSet
    IndexStore.publish(
      session,
      new TableFolder(table.root),
      _ => columns,
      before => valid(before.filterNot(e => fresh(e.path)), files) ++ collected,
      table.properties)
  }
}
