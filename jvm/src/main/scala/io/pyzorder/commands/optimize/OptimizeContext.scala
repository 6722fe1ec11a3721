package io.pyzorder.commands.optimize

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.{ClusteringColumns, ResolvedTable, TableFiles}
import io.pyzorder.common.{ZOrderConf, ZOrderErrors, ZOrderException}
import io.pyzorder.index.collect.SketchedColumns
import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.model.{Calendars, DeniedColumns, ExpressionColumn, IndexedColumn}
import io.pyzorder.index.model.{IndexedColumns, ReadSettings, ZValueColumn}
import io.pyzorder.index.store.{IndexStore, SnapshotRef}
import io.pyzorder.layout.cells.SampledQueries
import io.pyzorder.layout.select.{LayoutSettings, PartitionFiles, PartitionListing, RewriteGroup}
import io.pyzorder.layout.write.TypeConflicts
import io.pyzorder.publish.journal.LayoutRecord
import io.pyzorder.storage.{FileRef, TableFolder}

/**
 * The parameters of one OPTIMIZE, and the properties of the table that can be determined without
 * reading rows.
 *
 * @param where  a predicate over partition columns
 * @param chosen the layout to create
 * @param full   whether to rewrite files that are already clustered as requested
 */
private[optimize] final class OptimizeContext(
    val session: shim.SparkSession,
    val table: ResolvedTable,
    val where: Option[Expression],
    chosen: ChosenLayout,
    val full: Boolean) {

  /** The clustering columns; Nil if files are only compacted. */
  val zOrderBy: Seq[IndexedColumn] = chosen.columns

  /** The queries by which the table is cut; None if it is cut evenly. */
  val queries: Option[SampledQueries] = chosen.queries

  /** See ChosenLayout. */
  val worth: Map[String, Double] = chosen.worth

  val started: Long = System.currentTimeMillis()
  val folder: TableFolder = table.folder(session)

  /** Names of the clustering columns. */
  val names: Seq[String] = zOrderBy.map(_.label)

  private val conf = session.sessionState.conf
  private val denied = DeniedColumns.of(conf, table.properties)
  val settings = new LayoutSettings(
    conf, table.properties, LayoutRecord.last(session.sessionState.newHadoopConf(), folder))
  val batchSize: Long = ZOrderConf.batchSize.get(conf, table.properties)

  /** Target size of a new file in bytes. */
  lazy val targetSize: Long = settings.targetSize(
    PartitionListing.list(TableFiles.withoutJournal(session, table), folder, None)
      .map(_.size).sum,
    isClustered = zOrderBy.nonEmpty)

  /** The columns and settings of this OPTIMIZE, which become the defaults for the next one. */
  def layout: Option[LayoutRecord] = Some(settings.record(zOrderBy.map(ClusteringColumns.named)))

  /**
   * Lists the table's current data files. Throws ZORDER_SHARED_FOLDER if partitions share a folder.
   */
  def list(): Seq[PartitionFiles] = {
    val listed =
      PartitionListing.list(TableFiles.withoutJournal(session, table, where), folder, where)
    listed.groupBy(_.folder).values.find(_.length > 1).foreach { several =>
      throw ZOrderErrors.sharedPartitions(
        table.name, folder.resolve(several.head.folder).toString)
    }
    listed
  }

  def filesOf(groups: Seq[RewriteGroup]): Seq[FileRef] =
    groups.flatMap(_.files).map(PartitionListing.refOf(folder, _))

  def everyFile(partitions: Seq[PartitionFiles]): Seq[FileRef] =
    partitions.flatMap(_.files).map(PartitionListing.refOf(folder, _))

  lazy val latest: Option[SnapshotRef] =
    IndexStore.latest(session.sessionState.newHadoopConf(), folder)

  lazy val index: Option[IndexSnapshot] = latest.flatMap(IndexStore.load(session, _))

  /** The columns for which sketches of new files are collected, as recorded in the index. */
  lazy val sketched: SketchedColumns =
    SketchedColumns.of(latest.flatMap(_.sketched).getOrElse(Nil), conf, table.properties)

  /**
   * The columns to collect statistics for when new files are written: the clustering columns,
   * together with the columns of the index or, if there is no index, the default columns. Nil if
   * Spark matches the table's columns by field id or by position.
   */
  lazy val statisticsColumns: Seq[IndexedColumn] =
    if (ReadSettings.matchesFieldIds(session, table.fileSchema) ||
      ReadSettings.matchesPositions(session, table.options)) {
      Nil
    } else {
      val limit = ZOrderConf.indexMaxColumns.get(conf, table.properties)
      val every = IndexedColumns.default(table.fileSchema, Int.MaxValue).filterNot(denied(_))
      val chosen = index.map(_.columns).filter(_.nonEmpty).getOrElse(every.take(limit))
      every.filter(column => chosen.contains(column) || zOrderBy.contains(column))
    }

  /**
   * The expressions in the index and among the clustering columns. Their statistics are collected
   * after the files have been written.
   */
  lazy val expressionColumns: Seq[IndexedColumn] =
    (index.toSeq.flatMap(_.columns) ++ zOrderBy).distinct
      .filter(c => ExpressionColumn.matches(c) && !denied(c))

  /**
   * The index column for the z-values of the direct method. None if the method is not `direct`, if
   * a clustering column has no statistics, or if the table has a column with the same name. Also
   * None if, under some read settings, the values that Spark reads from a clustering column could
   * differ from the values that were written.
   *
   * @param timestamps the stored type of timestamps in the new files (see InputFooters)
   */
  def curveColumn(timestamps: Option[String]): Option[IndexedColumn] = {
    val curve = ZValueColumn(zOrderBy.map(_.path))
    val types = statisticsColumns.filter(zOrderBy.contains).map(_.dataType)
    val asWritten = table.provider == "parquet" && !timestamps.contains("TIMESTAMP_MILLIS") ||
      !types.exists(Calendars.isTemporal)
    if (settings.isDirect && types.length == zOrderBy.length && asWritten &&
      !table.schema.fieldNames.contains(curve.path.head)) Some(curve)
    else None
  }

  /**
   * Maps the current columns of the index to the columns that the index will have after the new
   * files have been added.
   *
   * @param hasCurve whether the new files have z-values
   */
  def columnsWith(hasCurve: Boolean): Seq[IndexedColumn] => Seq[IndexedColumn] = {
    val curve = if (hasCurve) Some(ZValueColumn(zOrderBy.map(_.path))) else None
    val columns = statisticsColumns ++ expressionColumns ++ curve
    old =>
      SnapshotRef.withoutOldCurves(
        old.filterNot(o => denied(o) || columns.exists(_.name == o.name)) ++ columns)
  }

  /**
   * The type conflict that explains the failure, or the failure itself if there is no type
   * conflict.
   */
  def explained(failure: Throwable): Throwable =
    if (!TypeConflicts.mayBe(failure)) failure
    else typeConflict(list().flatMap(_.files).map(_.getPath.toString))
      .map(ZOrderErrors.because(failure, _)).getOrElse(failure)

  def typeConflict(paths: Seq[String]): Option[ZOrderException] =
    TypeConflicts.of(session, table.provider, paths, table.dataSchema, table.name)
}
