package io.pyzorder.commands.action

import org.apache.spark.sql.pyzorder.shim
import org.slf4j.LoggerFactory

import io.pyzorder.catalog.{ResolvedTable, TableFiles}
import io.pyzorder.common.{Printable, ZOrderConf, ZOrderErrors}
import io.pyzorder.index.collect.{Collector, ResolvedExpression, SketchedColumns}
import io.pyzorder.index.model.{DeniedColumns, ExpressionColumn, FileEntry, IndexedColumn}
import io.pyzorder.index.model.IndexedColumns
import io.pyzorder.index.store.{Coverage, IndexPublisher, IndexStore, SnapshotRef}
import io.pyzorder.storage.{FailPoints, FileRef, TableFolder}

/** Operations on a table's index that several commands share. */
private[commands] object SkippingIndex {

  private val log = LoggerFactory.getLogger(getClass)

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
   * current type is used. Expressions are evaluated under the session's settings. An expression
   * that the session cannot evaluate is kept, but new entries have no statistics for it. If the
   * table no longer has any of the columns, the default columns are indexed.
   */
  def columnsToRefresh(
      session: shim.SparkSession,
      table: ResolvedTable): Option[Seq[IndexedColumn]] = {
    val hadoopConf = session.sessionState.newHadoopConf()
    IndexStore.lastColumns(hadoopConf, new TableFolder(table.root)).map { had =>
      val own = had.flatMap {
        case column @ ExpressionColumn(expression) =>
          ResolvedExpression.now(session, table.fileSchema, expression).map(_.column)
            .orElse(kept(table, column, expression)).map(column.path -> _)
        case column => IndexedColumns.fieldsOf(table.fileSchema, column.path, _ == _)
            .map(_.last.dataType).filter(IndexedColumns.supports)
            .map(now => column.path -> column.copy(dataType = now))
      }.toMap
      if (own.isEmpty) default(session, table)
      else had.map(column => own.getOrElse(column.path, column)).distinct
    }
  }

  /** The entries whose path, size and modification time match those of one of the files. */
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
    val indexed = ref.flatMap(from => IndexStore.loadAll(session, from)(_.entries).map(from -> _))
    val sketched = named.orElse(ref.flatMap(from =>
        from.sketched.map(_.map(renamed(from.columns, columns)))))
    val expressions =
      ResolvedExpression.usable(session, table.fileSchema, columns).map(_.column.name)
    val (files, listed) =
      TableFiles.listed(session, table)(TableFiles.list(session, table))(identity)
    def has(some: Seq[IndexedColumn]): Boolean =
      indexed.exists { case (from, _) => some.forall(from.columns.contains) }
    val known =
      if (has(columns))
        valid(indexed.toSeq.flatMap(_._2), files).filter(hasAll(_, expressions))
          .map(_.path).toSet
      else Set.empty[String]
    val missing = files.filterNot(file => known(file.path))
    val collected = Collector.collect(
      session, TableFiles.toIndex(session, table, missing), columns,
      SketchedColumns.of(sketched.getOrElse(Nil), session.sessionState.conf, table.properties))
    FailPoints.reach(session.sessionState.conf, "index-collected")
    val isSame = has(columns.filterNot(ExpressionColumn.matches))
    val fresh = collected.map(entry => entry.file -> entry).toMap
    val paths = collected.map(_.path).toSet
    IndexPublisher.publish(
      session,
      new TableFolder(table.root),
      _ => columns,
      old => {
        val clustered = old.filter(entry => isSame && fresh.contains(entry.file)).map(entry =>
          entry.file -> recollected(entry, fresh(entry.file))).toMap
        old.filterNot(entry => paths(entry.path) || listed.gone(entry.file)) ++
          collected.map(entry => clustered.getOrElse(entry.file, entry))
      },
      table.properties,
      coverage = Coverage.of(listed, _, _),
      sketched = _ => sketched)
    if (sketched.isEmpty) ChosenSketches.add(session, table)
  }

  /**
   * Keeps the column of an expression that this session cannot evaluate. Returns None if the table
   * lacks one of the columns that the expression reads.
   */
  private def kept(
      table: ResolvedTable,
      column: IndexedColumn,
      expression: ExpressionColumn): Option[IndexedColumn] =
    if (!expression.inputs.forall(table.fileSchema.fieldNames.contains)) None
    else {
      log.warn(Printable(s"This session cannot evaluate ${expression.text}, an expression in the " +
          s"index of ${table.name}. Files that are added to the index have no statistics for " +
          "this expression."))
      Some(column)
    }

  /**
   * Maps each column's name to its name after the refresh. Only the columns of expressions can get
   * new names, because these names include the settings under which the expressions are evaluated.
   */
  private def renamed(
      before: Seq[IndexedColumn],
      now: Seq[IndexedColumn]): String => String = {
    def byText(columns: Seq[IndexedColumn]): Map[String, IndexedColumn] =
      columns.flatMap(c => ExpressionColumn.unapply(c).map(_.text -> c)).toMap
    val current = byText(now)
    val names = byText(before).flatMap { case (text, column) =>
      current.get(text).map(column.name -> _.name)
    }
    name => names.getOrElse(name, name)
  }

  /** Whether the entry has statistics for all of these expressions, or the file has no rows. */
  private def hasAll(entry: FileEntry, expressions: Seq[String]): Boolean =
    entry.numRecords == 0 || expressions.forall(name =>
      entry.statistics.get(name).exists(!_.isUnknown))

  /**
   * The new entry of an unchanged file that was read again to collect statistics for expressions.
   * Unless the read settings have changed, the entry keeps the file's clustering columns and
   * z-values.
   */
  private def recollected(old: FileEntry, now: FileEntry): FileEntry =
    if (old.readSettings != now.readSettings) now
    else now.copy(
      clusteredBy = old.clusteredBy,
      statistics = old.statistics ++ now.statistics)
}
