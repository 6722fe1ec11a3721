package io.pyzorder.commands.optimize

import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.advisor.AutoLayout
import io.pyzorder.catalog.{ClusteringColumns, ResolvedTable}
import io.pyzorder.index.model.IndexedColumn

/** How an OPTIMIZE finds its clustering columns. */
sealed trait Clustering {

  /**
   * The columns, and a sentence that says why they were chosen. Nil if files are only compacted.
   */
  def choose(session: shim.SparkSession, table: ResolvedTable): (Seq[IndexedColumn], Option[String])
}

object Clustering {

  /** The columns are known. */
  final case class By(columns: Seq[IndexedColumn]) extends Clustering {
    override def choose(
        session: shim.SparkSession,
        table: ResolvedTable): (Seq[IndexedColumn], Option[String]) = (columns, None)
  }

  /** AUTO: the recorded workload decides. See AutoLayout. */
  final case class Auto(isDeclared: Boolean) extends Clustering {
    override def choose(
        session: shim.SparkSession,
        table: ResolvedTable): (Seq[IndexedColumn], Option[String]) = {
      val found = AutoLayout.choose(session, table, isDeclared)
      (found.columns, Some(found.remark))
    }
  }

  /** The clustering of an OPTIMIZE without ZORDER BY. */
  def default(session: shim.SparkSession, table: ResolvedTable): Clustering =
    if (ClusteringColumns.isAuto(table.properties, table.schema.fieldNames.toSeq)) {
      Auto(isDeclared = true)
    } else By(ClusteringColumns.default(session, table))
}
