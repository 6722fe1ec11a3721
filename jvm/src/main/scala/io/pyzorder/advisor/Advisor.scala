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
 * What a workload would open of a table, were it laid out otherwise. First every reading of the
 * workload is told, then a sample is drawn of the columns that these ask for, then layouts are
 * tried.
 */
final class Advisor(session: shim.SparkSession, val table: ResolvedTable) {

  private val filters = new WorkloadFilters(session, table)
  private val readings = ArrayBuffer.empty[Seq[IndexFilter]]

  lazy val present: AdvisedFiles = new AdvisedFiles(session, table)

  /** Whether there is an index, of whatever files. */
  def isIndexed: Boolean =
    IndexStore.latest(session.sessionState.newHadoopConf(), new TableFolder(table.root)).isDefined

  /** A predicate of the reading that will be told next. */
  def predicate(sql: String): WorkloadFilter = filters.ofPredicate(sql)

  /** A join of that reading; see WorkloadFilters. */
  def join(
      sql: String,
      column: String,
      other: shim.DataFrame,
      isBroadcast: Boolean): WorkloadFilter =
    filters.ofJoin(sql, column, other, isBroadcast)

  /** Tells a reading of the table by queries: all of the filters leave rows out. */
  def read(asked: Seq[IndexFilter]): Unit = readings += asked.filter(_ != IndexFilter.Always)

  /** Whether OPTIMIZE can lay out the table by the column. */
  def canCluster(column: IndexedColumn): Boolean =
    !table.isPartitionColumn(column.path.head) && OrderedBytes.supports(column.dataType)

  /** The columns that the readings ask for and files have. */
  lazy val columns: Seq[IndexedColumn] =
    readings.iterator.flatMap(_.iterator.flatMap(_.columns)).map(c => c.path -> c.dataType)
      .toVector.distinct.collect {
        case (path, dataType)
            if IndexedColumns.supports(dataType) && OrderedBytes.supports(dataType) =>
          IndexedColumn(path, dataType)
      }.filter(canCluster)

  /** Draws the sample, of at most so many rows. */
  def draw(limit: Long): SampledRows = {
    drawn = present.sample(columns, limit)
    drawn
  }

  private var drawn: SampledRows = _

  /**
   * Bytes that each reading opens of the files of a layout by these columns.
   *
   * @param by     some of `columns`
   * @param linear as with curve `linear`
   */
  def openedOf(by: Seq[IndexedColumn], linear: Boolean): Seq[Long] =
    opened(drawn.files(by.map(columns.indexOf(_)), linear))

  /**
   * For each layout the bytes of its files, as a multiple of what they are now; see SizeProbe.
   *
   * @param layouts some of `columns` each
   */
  def growth(layouts: Seq[Seq[IndexedColumn]]): Seq[Double] =
    present.growth(layouts.map(_.map(columns.indexOf(_))), drawn)

  /** Bytes that each reading opens of the files as they are; see AdvisedFiles.present. */
  def openedNow(complete: Boolean): Seq[Long] = opened(present.present(columns, complete))

  /** For each reading and column that it filters: the share of the rows that it leaves, 0 to 1. */
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
