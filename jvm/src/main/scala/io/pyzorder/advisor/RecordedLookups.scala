package io.pyzorder.advisor

import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.index.model.{ExpressionColumn, IndexedColumn}
import io.pyzorder.workload.{ShapeCount, WorkloadCounts, WorkloadRecorder}

/** Counts the recorded queries that can skip files if the table is clustered. */
object RecordedLookups {

  /** The number of days whose queries count, not counting days without queries. */
  val Days = 7

  /**
   * The number of queries, on the last `Days` days with queries, whose filters or join keys
   * restrict a clustering column. None if there are no clustering columns, or no recorded queries.
   *
   * @param columns the clustering columns. A filter on a column that an expression reads counts
   */
  def of(
      session: shim.SparkSession,
      table: ResolvedTable,
      columns: Seq[IndexedColumn]): Option[Long] =
    if (columns.isEmpty) None
    else {
      val recorded = WorkloadRecorder.read(session, table.folder(session))
      if (recorded.isEmpty) None
      else Some(count(session, table, pathsOf(columns), recorded.ofLast(Days)))
    }

  private def pathsOf(columns: Seq[IndexedColumn]): Seq[Seq[String]] = columns.flatMap {
    case ExpressionColumn(expression) => expression.inputs.map(Seq(_))
    case column => Seq(column.path)
  }.distinct

  private def count(
      session: shim.SparkSession,
      table: ResolvedTable,
      columns: Seq[Seq[String]],
      recorded: WorkloadCounts): Long = {
    val conditions = new RecordedConditions(session, table.schema.fieldNames.toSeq)
    def restricts(count: ShapeCount): Boolean =
      count.examples.headOption.exists(_.exists(conditions.restricts(_, columns)))
    recorded.shapes.iterator.collect {
      case (shape, count)
          if shape.joinKeys.exists(conditions.isOneOf(_, columns)) || restricts(count) =>
        count.queries
    }.sum
  }
}
