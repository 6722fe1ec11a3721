package io.pyzorder.commands.optimize

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.commands.action.{ChosenSketches, TableAction}

/**
 * An OPTIMIZE statement whose table and columns have been resolved.
 *
 * @param where      a predicate over partition columns
 * @param clustering how to find the clustering columns
 * @param full       whether to rewrite files that are already clustered as requested
 * @param dryRun     if true, only reports what would be done
 */
case class OptimizeTableCommand(
    table: ResolvedTable,
    where: Option[Expression],
    clustering: Clustering,
    full: Boolean,
    dryRun: Boolean)
    extends LeafRunnableCommand {

  override val output: Seq[Attribute] = OptimizeMetrics.output

  override def run(session: SparkSession): Seq[Row] = {
    val own = session.asInstanceOf[shim.SparkSession]
    val layout = clustering.choose(own, table)
    val metrics = TableAction.execute(own, table) { table =>
      new OptimizeAction(
        new OptimizeContext(own, table, where, layout, full), dryRun)
    }
    if (!dryRun && metrics.path == table.root.toString) ChosenSketches.add(own, table)
    Seq(layout.remark.fold(metrics)(metrics.withRemark).toRow)
  }
}
