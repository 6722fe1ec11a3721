package io.pyzorder.commands

import java.sql.Timestamp

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, ExpressionInfo, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{BooleanType, LongType, StringType, TimestampType}

import io.pyzorder.ZOrderErrors
import io.pyzorder.index.IndexStore
import io.pyzorder.parser.{StatementGrammar, ZOrderSqlParser}
import io.pyzorder.publish.{PastRun, TableFolder}

/** What stands in FROM: `skipping_index('target')` and `optimize_history('target')`. */
object TableFunctions {

  type Description = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan)

  /** Names and builders, as SparkSessionExtensions.injectTableFunction wants them. */
  def all: Seq[Description] = Seq(
    describe("skipping_index", index),
    describe("optimize_history", history))

  /** The index table. */
  private def index(session: shim.SparkSession, table: ResolvedTable): LogicalPlan =
    IndexStore.relation(session, SkippingIndex.required(session, table))

  private val historyColumns: Seq[Attribute] = ResultColumns.none
    .always("run", LongType, "Number of the run, from 1")
    .add("operation", StringType, "OPTIMIZE, RESTORE or VACUUM; null: its record is torn")
    .add("began", TimestampType, "By the writer's clock")
    .add("ended", TimestampType, "By the store's clock; null: it is at work, or died")
    .always("committed", BooleanType, "Whether it replaced files")
    .always("removed", LongType, "Files that it replaced")
    .always("removed_bytes", LongType, "Their size")
    .always("added", LongType, "Files that took their place")
    .always("added_bytes", LongType, "Their size")
    .always("kept", LongType, "Replaced files that VACUUM has not deleted")
    .always("kept_bytes", LongType, "Their size")
    .attributes

  /** The runs of the table's journal, the first one first. */
  private def history(session: shim.SparkSession, table: ResolvedTable): LogicalPlan = {
    def time(milliseconds: Long): Timestamp = new Timestamp(milliseconds)
    val runs = PastRun.all(session.sessionState.newHadoopConf(), new TableFolder(table.root))
    LocalRelation.fromExternalRows(historyColumns.map(_.newInstance()), runs.map { run =>
      Row(
        run.run,
        Option(run.operation).filter(_.nonEmpty).orNull,
        Option(run.began).filter(_ > 0).map(time).orNull,
        run.ended.map(time).orNull,
        run.committed,
        run.retired.length.toLong,
        run.retired.map(_.size).sum,
        run.added.length.toLong,
        run.added.map(_.size).sum,
        run.kept.toLong,
        run.keptBytes)
    })
  }

  private def describe(
      name: String,
      build: (shim.SparkSession, ResolvedTable) => LogicalPlan): Description = {
    def of(arguments: Seq[Expression]): LogicalPlan = {
      val target = arguments match {
        case Seq(Literal(text, _: StringType)) if text != null => text.toString
        case _ => throw ZOrderErrors.error("ZORDER_INVALID_ARGUMENT", "42K08",
            s"$name takes one string literal, the table: $name('db.t').")
      }
      val session = SparkSession.active.asInstanceOf[shim.SparkSession]
      build(session, tableOf(session, target))
    }
    (FunctionIdentifier(name), new ExpressionInfo(getClass.getName.stripSuffix("$"), name), of)
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
    ZOrderSqlParser.targetPlan(StatementGrammar.target(target), "the table function",
      literal =>
        session.sessionState.sqlParser.parseExpression(literal) match {
          case Literal(value, _: StringType) => value.toString
          case other => other.sql
        })
}
