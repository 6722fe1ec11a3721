package io.pyzorder.commands.optimize

import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.advisor.AutoLayout
import io.pyzorder.catalog.{ClusteringColumns, ResolvedTable}
import io.pyzorder.common.StoreFailures
import io.pyzorder.index.model.IndexedColumn
import io.pyzorder.layout.cells.SampledQueries

/**
 * The layout that an OPTIMIZE creates.
 *
 * @param columns the clustering columns; Nil if files are only compacted
 * @param remark  says why the layout was chosen; None if the statement or the table names it
 * @param queries the queries by which the table is cut; None if it is cut evenly
 * @param worth   for each folder, how many bytes the recorded queries would save if its files had
 *                this layout; empty if not estimated
 */
final case class ChosenLayout(
    columns: Seq[IndexedColumn],
    remark: Option[String] = None,
    queries: Option[SampledQueries] = None,
    worth: Map[String, Double] = Map.empty)

/** How an OPTIMIZE finds its clustering columns. */
sealed trait Clustering {

  def choose(session: shim.SparkSession, table: ResolvedTable): ChosenLayout
}

object Clustering {

  /** The columns are known. */
  final case class By(columns: Seq[IndexedColumn], remark: Option[String] = None)
      extends Clustering {
    override def choose(session: shim.SparkSession, table: ResolvedTable): ChosenLayout =
      ChosenLayout(columns, remark)
  }

  /**
   * AUTO: the recorded workload decides. See AutoLayout. Throws ZORDER_CONFLICT if another process
   * deletes files in the meantime.
   */
  final case class Auto(isDeclared: Boolean) extends Clustering {
    override def choose(session: shim.SparkSession, table: ResolvedTable): ChosenLayout = {
      val found = StoreFailures.translate(table.root)(
        AutoLayout.choose(session, table, isDeclared))
      ChosenLayout(found.columns, Some(found.remark), found.queries, found.worth)
    }
  }

  /** The clustering of an OPTIMIZE without ZORDER BY. */
  def default(session: shim.SparkSession, table: ResolvedTable): Clustering =
    if (ClusteringColumns.isAuto(table.properties, table.schema.fieldNames.toSeq)) {
      Auto(isDeclared = true)
    } else By(ClusteringColumns.default(session, table))
}
