package io.pyzorder.advisor

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.DataType

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.index.model.{ColumnStatistics, IndexedColumn}
import io.pyzorder.layout.cells.{CellBounds, CellQueries, CellQuery, SampledQueries}
import io.pyzorder.skipping.predicate.{IndexFilter, PredicateBox}

/**
 * A recorded query.
 *
 * @param count    how often it occurs
 * @param isFixed  whether its conditions recur with the same constants. Otherwise, it is one
 *                 example of queries with different constants
 */
final case class RecordedQuery(filter: IndexFilter, count: Long, isFixed: Boolean)

/**
 * The queries of a workload, by which OPTIMIZE cuts a table. A query reads a cell if the data
 * skipping rules would open a file with the cell's bounds.
 *
 * @param columns the clustering columns
 * @param evenly  those of the columns that are cut where the queries do not decide
 */
final class QueryCuts(
    session: shim.SparkSession,
    table: ResolvedTable,
    columns: Seq[IndexedColumn],
    evenly: Seq[IndexedColumn],
    queries: Seq[RecordedQuery])
    extends SampledQueries {
  import QueryCuts._

  private val asked: Seq[RecordedQuery] = queries.sortBy(-_.count).take(MostQueries)

  private val even: Seq[Int] = {
    val own = columns.indices.filter(c => evenly.contains(columns(c)))
    if (own.isEmpty) columns.indices else own
  }

  override def of(values: Array[Array[Any]], ids: Array[Array[Int]]): CellQueries =
    new CellQueries {
      private val ranges = columns.indices.map(c => new Ranges(columns(c).dataType, values, ids, c))

      override def evenly: Seq[Int] = even

      override val edges: Seq[Seq[Int]] = columns.indices.map { c =>
        asked.flatMap { query =>
          val box = PredicateBox.of(query.filter, _.path == columns(c).path)
          box.least.map(ranges(c).firstFrom) ++ box.greatest.map(ranges(c).firstAfter)
        }.distinct
      }

      override def apply(cells: IndexedSeq[CellBounds]): Seq[CellQuery] = {
        val files = cells.map(cell =>
          WhatIfFile(1L, None, columns.indices.map(c => ranges(c).statistics(cell, c))))
        val layout = WhatIfLayout.of(session, table, columns, files)
        asked.map { query =>
          val reads = new Array[Boolean](cells.length)
          layout.matching(query.filter).foreach(reads(_) = true)
          CellQuery(query.count, evidenceOf(query), reads)
        }
      }
    }
}

private object QueryCuts {

  /** The maximum number of different queries. The most frequent ones are used. */
  private val MostQueries = 200

  /** A query with fixed constants stands for as many queries as there were. */
  private def evidenceOf(query: RecordedQuery): Int =
    if (query.isFixed) math.min(query.count, Int.MaxValue / MostQueries).toInt else 1

  /** The least and the greatest value of each range id in column `c`. */
  private final class Ranges(
      dataType: DataType,
      values: Array[Array[Any]],
      ids: Array[Array[Int]],
      c: Int) {

    private val order = TypeUtils.getInterpretedOrdering(dataType)
    private val count = ids(c).foldLeft(0)(_ max _) + 1
    private val least, greatest = new Array[Any](count)
    private val hasNaN = new Array[Boolean](count)
    values.indices.foreach { row =>
      val (id, value) = (ids(c)(row), values(row)(c))
      if (value != null) {
        if (isNaN(value)) hasNaN(id) = true
        if (least(id) == null || order.lt(value, least(id))) least(id) = value
        if (greatest(id) == null || order.gt(value, greatest(id))) greatest(id) = value
      }
    }
    private val firstNaN = if (hasNaN.contains(true)) hasNaN.indexOf(true) else Int.MaxValue

    /** The first range id with a value that is at least `value`. */
    def firstFrom(value: Any): Int = first(id => order.gteq(greatest(id), value))

    /** The first range id all of whose values are greater than `value`. */
    def firstAfter(value: Any): Int = first(id => order.gt(least(id), value))

    private def first(isFound: Int => Boolean): Int =
      (1 until count).find(id => least(id) != null && isFound(id)).getOrElse(count)

    def statistics(cell: CellBounds, column: Int): ColumnStatistics =
      if (cell.greatest(column) >= firstNaN) ColumnStatistics.unknown
      else {
        val isEmpty = cell.greatest(column) == 0
        ColumnStatistics(
          bounds =
            if (isEmpty) None
            else Some((least(cell.least(column)), greatest(cell.greatest(column)))),
          exact = false,
          nullCount = Some(if (cell.hasNull(column)) 1L else 0L),
          nanSeen = false,
          empty = isEmpty,
          settingsDependent = false)
      }
  }

  private def isNaN(value: Any): Boolean = value match {
    case number: Double => number.isNaN
    case number: Float => number.isNaN
    case _ => false
  }
}
