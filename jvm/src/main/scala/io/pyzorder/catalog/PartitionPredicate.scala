package io.pyzorder.catalog

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression}
import org.apache.spark.sql.catalyst.expressions.{PlanExpression, UserDefinedExpression}
import org.apache.spark.sql.catalyst.optimizer.{ComputeCurrentTime, ConstantFolding}
import org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, LogicalPlan}
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.ZOrderErrors

/** Validates the WHERE clause of an OPTIMIZE, which may select only whole partitions. */
object PartitionPredicate {

  /**
   * Resolves the predicate so that it can be passed to FileIndex.listFiles. The result refers only
   * to partition columns, spelled as in `table.partitionSchema`. It does not contain any
   * subqueries, current-time functions or other expressions that only Spark's optimizer can
   * replace.
   */
  def resolve(session: shim.SparkSession, table: ResolvedTable, where: Expression): Expression = {
    val columns = (table.partitionSchema ++ table.fileSchema)
      .map(f => AttributeReference(f.name, f.dataType, f.nullable, f.metadata)())
    val same = session.sessionState.conf.resolver
    val rebound = where.transform { case column: AttributeReference =>
      columns.find(_.name == column.name)
        .orElse(columns.find(c => same(c.name, column.name))).getOrElse(column)
    }
    val analyzed = analyze(session, table, Filter(rebound, LocalRelation(columns.toSeq)))
    val condition = ConstantFolding(ComputeCurrentTime(ReplaceExpressions(analyzed))) match {
      case Filter(predicate, _) => predicate
      case other =>
        throw ZOrderErrors.unsupportedPredicate(
          where.sql, s"requires the operator ${other.nodeName}")
    }
    check(table, condition)
    condition
  }

  private def analyze(
      session: shim.SparkSession,
      table: ResolvedTable,
      filter: Filter): LogicalPlan =
    try shim.dataFrame(session, filter).queryExecution.analyzed
    catch {
      case e: AnalysisException
          if Option(e.getErrorClass).exists(_.startsWith("UNRESOLVED_COLUMN")) =>
        val name = Option(e.getMessageParameters.get("objectName")).getOrElse(filter.condition.sql)
        throw ZOrderErrors.notPartitionPredicate(
          Seq(name.replace("`", "")), table.partitionSchema.fieldNames.toSeq)
    }

  private def check(table: ResolvedTable, condition: Expression): Unit = {
    val others = condition.references.map(_.name).filterNot(table.isPartitionColumn).toSeq.distinct
    if (others.nonEmpty) {
      throw ZOrderErrors.notPartitionPredicate(others, table.partitionSchema.fieldNames.toSeq)
    }
    condition.foreach {
      case e: PlanExpression[_] => throw ZOrderErrors.unsupportedPredicate(e.sql, "has a subquery")
      case e: UserDefinedExpression =>
        throw ZOrderErrors.unsupportedPredicate(e.sql, "calls a user-defined function")
      case e if !e.deterministic =>
        throw ZOrderErrors.unsupportedPredicate(e.sql, "is not deterministic")
      case _ =>
    }
  }
}
