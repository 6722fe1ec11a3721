package io.pyzorder.advisor

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.expressions.OrderedBytes
import io.pyzorder.index.model.{IndexedColumn, IndexedColumns}
import io.pyzorder.index.store.IndexStore
import io.pyzorder.skipping.predicate.IndexFilter
import io.pyzorder.storage.TableFolder

/**
 * Estimates how many bytes of a table a workload would open under other layouts. The caller first
 * adds each of the workload's scans of the table, then draws a sample of the columns that the scans
 * filter, and then tries layouts.
 */
final class Advisor(session: shim.SparkSession, val table: ResolvedTable) {

  private val filters = new WorkloadFilters(session, table)
  private val readings = ArrayBuffer.empty[Seq[IndexFilter]]

  lazy val present: AdvisedFiles = new AdvisedFiles(session, table)

  /** Whether the table has an index, which need not cover all of its files. */
  def isIndexed: Boolean =
    IndexStore.latest(session.sessionState.newHadoopConf(), new TableFolder(table.root)).isDefined

  /** The index filter for a predicate of a scan. */
  def predicate(sql: String): WorkloadFilter = filters.ofPredicate(sql)

  /** The index filter for a join that a scan takes part in; see WorkloadFilters. */
  def join(
      sql: String,
      column: String,
      other: shim.DataFrame,
      isBroadcast: Boolean): WorkloadFilter =
    filters.ofJoin(sql, column, other, isBroadcast)

  /** Adds a scan of the table, whose filters are combined with AND. */
  def read(asked: Seq[IndexFilter]): Unit = readings += asked.filter(_ != IndexFilter.Always)

  /** Whether OPTIMIZE can cluster the table by the column. */
  def canCluster(column: IndexedColumn): Boolean =
    !table.isPartitionColumn(column.path.head) && OrderedBytes.supports(column.dataType)

  /** The columns in the scans' filters that OPTIMIZE can cluster the table by. */
  lazy val columns: Seq[IndexedColumn] =
    readings.iterator.flatMap(_.iterator.flatMap(_.columns)).map(c => c.path -> c.dataType)
      .toVector.distinct.collect {
        case (path, dataType)
            if IndexedColumns.supports(dataType) && OrderedBytes.supports(dataType) =>
          IndexedColumn(path, dataType)
      }.filter(canCluster)

  /** Draws the sample, with at most about `limit` rows. */
  def draw(limit: Long): SampledRows = {
    drawn = present.sample(columns, limit)
    drawn
  }

  private var drawn: SampledRows = _

  /**
   * Bytes that each scan would open in a layout clustered by these columns.
   *
   * @param by     some of `columns`
   * @param linear whether the curve is `linear`
   */
  def openedOf(by: Seq[IndexedColumn], linear: Boolean): Seq[Long] =
    opened(drawn.files(by.map(columns.indexOf(_)), linear))

  /**
   * The size of each layout's files, as a multiple of the current size; see SizeProbe.
   *
   * @param layouts the columns of each layout, which are some of `columns`
   */
  def growth(layouts: Seq[Seq[IndexedColumn]]): Seq[Double] =
    present.growth(layouts.map(_.map(columns.indexOf(_))), drawn)

  /** Bytes that each scan opens in the current files; see AdvisedFiles.present. */
  def openedNow(complete: Boolean): Seq[Long] = opened(present.present(columns, complete))

  /**
   * For each scan and each column that the scan filters, the share of rows (0 to 1) that pass the
   * filters on this column alone. The shares are estimated from about `atMost` sampled rows.
   * Filters that refer to several columns are ignored.
   */
  def selectivity(atMost: Int): Seq[Seq[(IndexedColumn, Double)]] = {
    val rows = drawn.rows(atMost)
    val layout = WhatIfLayout.of(session, table, columns, rows)
    readings.toSeq.map { filters =>
      val ofOne = filters.groupBy(_.columns.map(_.path).distinct).toSeq.collect {
        case (Seq(path), own) => columns.find(_.path == path).map(_ -> own)
      }.flatten
      ofOne.map { case (column, own) =>
        column -> layout.opened(own.reduce(IndexFilter.and)).toDouble / math.max(1, rows.length)
      }
    }
  }

  private def opened(files: Seq[WhatIfFile]): Seq[Long] = {
    val layout = WhatIfLayout.of(session, table, columns, files)
    readings.toSeq.map(filters =>
      layout.opened(filters.foldLeft(IndexFilter.Always: IndexFilter)(IndexFilter.and)))
  }
}
