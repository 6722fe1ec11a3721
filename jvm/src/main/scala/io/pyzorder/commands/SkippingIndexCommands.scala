package io.pyzorder.commands

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.{ZOrderConf, ZOrderErrors}
import io.pyzorder.index.{Collector, FileEntry, IndexStore, IndexedColumn, IndexedColumns}
import io.pyzorder.index.SnapshotRef
import io.pyzorder.publish.{FileRef, TableFolder}

/** CREATE SKIPPING INDEX: statistics of the files as they lie. `columns` empty: all that can. */
case class CreateSkippingIndexCommand(
    table: ResolvedTable,
    ifNotExists: Boolean,
    columns: Seq[Seq[String]])
    extends LeafRunnableCommand {

  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = sparkSession.asInstanceOf[shim.SparkSession]
    val exists = SkippingIndex.latest(session, table).isDefined
    if (exists && !ifNotExists) throw ZOrderErrors.indexExists(table.name)
    if (!exists) {
      val conf = session.sessionState.conf
      val chosen =
        if (columns.isEmpty) {
          val limit = ZOrderConf.indexMaxColumns.get(conf, table.properties)
          IndexedColumns.default(table.fileSchema, limit)
        } else {
          IndexedColumns.resolve(
            table.fileSchema, columns, table.name, conf.caseSensitiveAnalysis)
        }
      SkippingIndex.update(session, table, chosen)
    }
    Nil
  }
}

/** REFRESH SKIPPING INDEX: entries of files that have come or changed, none of those that went. */
case class RefreshSkippingIndexCommand(table: ResolvedTable) extends LeafRunnableCommand {
  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = sparkSession.asInstanceOf[shim.SparkSession]
    val ref = SkippingIndex.required(session, table)
    SkippingIndex.update(session, table, ref.columns)
    Nil
  }
}

/** DROP SKIPPING INDEX. */
case class DropSkippingIndexCommand(table: ResolvedTable, ifExists: Boolean)
    extends LeafRunnableCommand {
  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = sparkSession.asInstanceOf[shim.SparkSession]
    val folder = new TableFolder(table.root)
    val fs = folder.index.getFileSystem(session.sessionState.newHadoopConf())
    if (fs.exists(folder.index)) IndexStore.drop(session, folder)
    else if (!ifExists) throw ZOrderErrors.indexNotFound(table.name)
    Nil
  }
}

/** What the commands on an index share. */
private[commands] object SkippingIndex {

  def latest(session: shim.SparkSession, table: ResolvedTable): Option[SnapshotRef] =
    IndexStore.latest(session.sessionState.newHadoopConf(), new TableFolder(table.root))

  def required(session: shim.SparkSession, table: ResolvedTable): SnapshotRef =
    latest(session, table).getOrElse(throw ZOrderErrors.indexNotFound(table.name))

  /** The entries that describe a file as it is now. */
  def valid(entries: Seq[FileEntry], files: Seq[FileRef]): Seq[FileEntry] = {
    val now = files.toSet
    entries.filter(e => now(FileRef(e.path, e.size, e.modificationTime)))
  }

  /** Publishes entries of every file of the table; those that are still valid are kept. */
  def update(
      session: shim.SparkSession,
      table: ResolvedTable,
      columns: Seq[IndexedColumn]): Unit = {
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
      before => valid(before.filterNot(e => fresh(e.path)), files) ++ collected)
  }
}
