package io.pyzorder.commands

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, Literal}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StringType

import io.pyzorder.ZOrderErrors
import io.pyzorder.index.IndexStore
import io.pyzorder.parser.{StatementGrammar, ZOrderSqlParser}

/** The table function `skipping_index('target')`: the index table as a relation. */
object SkippingIndexFunction {

  /** Name, description and builder, as SparkSessionExtensions.injectTableFunction wants them. */
  def description: (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan) = (
    FunctionIdentifier("skipping_index"),
    new ExpressionInfo(getClass.getName.stripSuffix("$"), "skipping_index"),
    build)

  private def build(arguments: Seq[Expression]): LogicalPlan = {
    val target = arguments match {
      case Seq(Literal(text, _: StringType)) if text != null => text.toString
      case _ => throw ZOrderErrors.error("ZORDER_INVALID_ARGUMENT", "42K08",
          "skipping_index takes one string literal, the table: skipping_index('db.t').")
    }
    val session = SparkSession.active.asInstanceOf[shim.SparkSession]
    IndexStore.relation(session, SkippingIndex.required(session, tableOf(session, target)))
  }

  /**
   * The table of a text: a path stands for itself here, beside the forms that statements know:
   * 'db.t', "orc.`/t`".
   */
  def tableOf(session: shim.SparkSession, target: String): ResolvedTable = {
    val lookup = new TargetLookup(session)
    if (isPath(target)) lookup.ofPath(target, None) else lookup.ofTarget(parsed(target, session))
  }

  private def isPath(target: String): Boolean =
    target.contains("/") && !target.contains("`") && !target.contains("'")

  private def parsed(target: String, session: shim.SparkSession): LogicalPlan =
    ZOrderSqlParser.targetPlan(StatementGrammar.target(target), "skipping_index",
      literal =>
        session.sessionState.sqlParser.parseExpression(literal) match {
          case Literal(value, _: StringType) => value.toString
          case other => other.sql
        })
}
