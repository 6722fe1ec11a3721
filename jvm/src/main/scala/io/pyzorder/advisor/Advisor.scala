package io.pyzorder.advisor

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.expressions.OrderedBytes
import io.pyzorder.index.model.{DeniedColumns, ExpressionColumn, IndexedColumn, IndexedColumns}
import io.pyzorder.index.store.IndexStore
import io.pyzorder.skipping.predicate.IndexFilter
import io.pyzorder.storage.TableFolder

/**
 * Estimates how much of a table a workload would read if the table had a different layout. The
 * estimate is the total size of the files that the workload would open. The caller first adds the
 * workload's scans of the table, then samples the columns that the scans filter on, and finally
 * evaluates layouts.
 *
 * @param others columns that are sampled even if no scan filters on them
 * @param cuts   expressions for which the new layouts may have statistics
 */
final class Advisor(
    session: shim.SparkSession,
    val table: ResolvedTable,
    others: Seq[IndexedColumn] = Nil,
    cuts: Seq[IndexedColumn] = Nil) {

  private val filters = new WorkloadFilters(
    session, table, (others ++ cuts).filter(ExpressionColumn.matches))
  private val readings = ArrayBuffer.empty[Seq[IndexFilter]]

  lazy val present: AdvisedFiles = new AdvisedFiles(session, table)

  /** Whether the table has an index, even if the index does not cover all of the table's files. */
  def isIndexed: Boolean =
    IndexStore.latest(session.sessionState.newHadoopConf(), new TableFolder(table.root)).isDefined

  /** The index filter for one predicate of a scan. */
  def predicate(sql: String): WorkloadFilter = filters.ofPredicate(sql)

  /** The index filter for a join that involves a scan of the table; see WorkloadFilters. */
  def join(
      sql: String,
      column: String,
      other: shim.DataFrame,
      isBroadcast: Boolean): WorkloadFilter =
    filters.ofJoin(sql, column, other, isBroadcast)

  /** Adds a scan of the table with these filters. A row must pass all of them. */
  def read(asked: Seq[IndexFilter]): Unit = readings += asked.filter(_ != IndexFilter.Always)

  private val denied = DeniedColumns.of(session.sessionState.conf, table.properties)

  /** Whether OPTIMIZE can cluster the table by the column. */
  def canCluster(column: IndexedColumn): Boolean =
    !table.isPartitionColumn(column.path.head) && OrderedBytes.supports(column.dataType) &&
      !denied(column)

  /** The columns in the scans' filters that OPTIMIZE can cluster the table by, and `others`. */
  lazy val columns: Seq[IndexedColumn] = (filtered ++ others).distinct

  /** Whether a scan filters on a column that OPTIMIZE can cluster the table by. */
  def hasFilters: Boolean = filtered.nonEmpty

  private lazy val filtered: Seq[IndexedColumn] =
    readings.iterator.flatMap(_.iterator.flatMap(_.columns)).map(c => c.path -> c.dataType)
      .toVector.distinct.collect {
        case (path, dataType)
            if IndexedColumns.supports(dataType) && OrderedBytes.supports(dataType) =>
          IndexedColumn(path, dataType)
      }.filter(canCluster)

  /** Samples up to about `limit` rows. */
  def draw(limit: Long): SampledRows = {
    drawn = present.sample(columns, limit)
    drawn
  }

  private var drawn: SampledRows = _

  /**
   * For each scan, the total size of the files that it would open if the table were clustered by
   * the columns in `by`.
   *
   * @param by     the clustering columns, which must be among `columns`
   * @param linear whether the curve is `linear`
   */
  def openedOf(by: Seq[IndexedColumn], linear: Boolean): Seq[Long] =
    opened(drawn.files(by.map(columns.indexOf(_)), linear))

  /** Like `openedOf`, but the table is cut by these queries. */
  def openedOf(by: Seq[IndexedColumn], queries: QueryCuts): Seq[Long] =
    opened(drawn.files(by.map(columns.indexOf(_)), linear = false, Some(queries)))

  /** Those of the columns that are cut if the table is cut by the queries. */
  def cutColumns(by: Seq[IndexedColumn], queries: QueryCuts): Seq[IndexedColumn] =
    drawn.cutColumns(by.map(columns.indexOf(_)), queries).sorted.map(columns(_))

  /**
   * The scans, as queries by which the table is cut.
   *
   * @param by      the clustering columns
   * @param evenly  see QueryCuts
   * @param weights how often each scan occurs
   * @param isFixed for each scan, see RecordedQuery
   */
  def queries(
      by: Seq[IndexedColumn],
      evenly: Seq[IndexedColumn],
      weights: Seq[Long],
      isFixed: Seq[Boolean]): QueryCuts =
    new QueryCuts(session, table, by, evenly,
      readings.indices.collect {
        case i if weights(i) > 0 => RecordedQuery(allOf(readings(i)), weights(i), isFixed(i))
      })

  /**
   * For each layout, the ratio of the table's size in that layout to its current size; see
   * SizeProbe.
   *
   * @param layouts the clustering columns of each layout, which must be among `columns`
   */
  def growth(layouts: Seq[Seq[IndexedColumn]]): Seq[Double] =
    present.growth(layouts.map(_.map(columns.indexOf(_))), drawn)

  /** For each scan, the total size of the current files that it opens; see AdvisedFiles.present. */
  def openedNow(complete: Boolean): Seq[Long] = opened(present.present(columns, complete))

  /**
   * For each scan and each column that it filters on, the share (0 to 1) of the rows that pass the
   * scan's filters on this column. Filters that also refer to other columns are ignored. The shares
   * are estimated from about `atMost` sampled rows.
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

  /**
   * For each partition, the total size of the files that the scans open.
   *
   * @param layout  a layout of the table; its current files if the layout has no columns
   * @param weights how often each scan occurs
   */
  def openedIn(layout: JudgedLayout, weights: Seq[Long]): Map[InternalRow, Double] = {
    val files =
      if (layout.columns.isEmpty) present.present(columns, complete = false)
      else drawn.files(layout.columns.map(columns.indexOf(_)), layout.isSorted, layout.queries)
    val whatIf = WhatIfLayout.of(session, table, columns, files)
    val opened = new Array[Double](files.length)
    readings.indices.filter(weights(_) > 0).foreach(i =>
      whatIf.matching(allOf(readings(i))).foreach(file =>
        opened(file) += weights(i).toDouble * files(file).bytes))
    files.indices.groupBy(files(_).partition.get).map { case (partition, own) =>
      partition -> own.map(opened(_)).sum
    }
  }

  private def opened(files: Seq[WhatIfFile]): Seq[Long] = {
    val layout = WhatIfLayout.of(session, table, columns, files)
    readings.toSeq.map(filters => layout.opened(allOf(filters)))
  }

  private def allOf(filters: Seq[IndexFilter]): IndexFilter =
    filters.foldLeft(IndexFilter.Always: IndexFilter)(IndexFilter.and)
}
