package io.pyzorder.commands

import java.sql.Timestamp
import java.time.LocalDate

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, ExpressionInfo, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.pyzorder.{shim, StatementJobs}
import org.apache.spark.sql.types._

import io.pyzorder.catalog.{ResolvedTable, TargetLookup}
import io.pyzorder.commands.action.{ResultColumns, SkippingIndex}
import io.pyzorder.common.{JobDescription, ZOrderErrors}
import io.pyzorder.index.store.IndexStore
import io.pyzorder.parser.{StatementGrammar, ZOrderSqlParser}
import io.pyzorder.publish.journal.HistoryEntry
import io.pyzorder.workload.WorkloadRecorder

/**
 * The table functions `skipping_index('target')`, `optimize_history('target')`,
 * `zorder_workload('target')` and `statement_progress('tag')`.
 */
object TableFunctions {

  type Description = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan)

  /** The functions in the form that SparkSessionExtensions.injectTableFunction expects. */
  def all: Seq[Description] = Seq(
    describe("skipping_index", "the table", "db.t")((s, target) => index(s, tableOf(s, target))),
    describe("optimize_history", "the table", "db.t")((s, target) =>
      history(s, tableOf(s, target))),
    describe("zorder_workload", "the table", "db.t")((s, target) =>
      workload(s, tableOf(s, target))),
    describe("statement_progress", "the tag of the statement", "a-tag")(progress))

  /** The index table as a relation. */
  private def index(session: shim.SparkSession, table: ResolvedTable): LogicalPlan =
    IndexStore.relation(session, SkippingIndex.required(session, table))

  private val historyColumns: Seq[Attribute] = ResultColumns.none
    .always("run", LongType, "Number of the run, counting from 1")
    .add("operation", StringType, "OPTIMIZE, RESTORE or VACUUM; null if the record is damaged")
    .add("began", TimestampType, "Start time according to the writer's clock")
    .add("ended", TimestampType,
      "End time according to the store's clock; null if the run is in progress or was killed")
    .always("committed", BooleanType,
      "Whether the run replaced files; false also if there was nothing to do")
    .always("removed", LongType, "Number of files that the run replaced")
    .always("removed_bytes", LongType, "Total size of the replaced files in bytes")
    .always("added", LongType, "Number of files that the run added")
    .always("added_bytes", LongType, "Total size of the added files in bytes")
    .always("kept", LongType, "Number of replaced files that VACUUM has not deleted yet")
    .always("kept_bytes", LongType, "Total size of the kept files in bytes")
    .always("partitions", LongType, "Number of folders whose data files the run processed")
    .add("seconds", DoubleType, "Duration in seconds, from `began` to `ended`")
    .always("undone", BooleanType, "Whether a later RESTORE has undone the run")
    .attributes

  /** The runs in the table's journal, oldest first. */
  private def history(session: shim.SparkSession, table: ResolvedTable): LogicalPlan = {
    def time(milliseconds: Long): Timestamp = new Timestamp(milliseconds)
    val runs = HistoryEntry.all(session.sessionState.newHadoopConf(), table.folder(session))
    LocalRelation.fromExternalRows(historyColumns.map(_.newInstance()),
      runs.map { run =>
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
          run.keptBytes,
          foldersOf(run).toLong,
          run.seconds.map(Double.box).orNull,
          run.undone)
      })
  }

  private def foldersOf(run: HistoryEntry): Int =
    (run.retired ++ run.added).map(_.folder).distinct.length

  private val workloadColumns: Seq[Attribute] = ResultColumns.none
    .always("filters", StringType,
      "The conditions of the queries, with `?` in place of constants; may be empty")
    .always("join_keys", ArrayType(StringType, containsNull = false),
      "The columns that a query joined with rows that have conditions of their own")
    .always("queries", LongType,
      "Number of times that a query read the table in this way, on all recorded days")
    .always("last", TimestampType, "When the last of these queries ended")
    .always("examples", ArrayType(StringType, containsNull = false),
      "Conditions of up to 8 of the queries, with constants, and the values of the join keys")
    .always("days", MapType(DateType, LongType, valueContainsNull = false),
      "Number of these queries on each day (UTC). The last 30 days with queries are kept")
    .attributes

  /** The recorded workload, the most frequent conditions first. */
  private def workload(session: shim.SparkSession, table: ResolvedTable): LogicalPlan = {
    val shapes = WorkloadRecorder.read(session, table.folder(session)).shapes.toSeq
    LocalRelation.fromExternalRows(workloadColumns.map(_.newInstance()),
      shapes.sortBy { case (shape, count) => (-count.queries, shape.toString) }
        .map { case (shape, count) =>
          Row(
            shape.filters.mkString(" AND "), shape.joinKeys, count.queries,
            new Timestamp(count.last),
            count.examples.map(_.filter(_.nonEmpty).mkString(" AND ")),
            count.days.map { case (day, scans) =>
              LocalDate.ofEpochDay(day) -> scans
            })
        })
  }

  private val progressColumns: Seq[Attribute] = ResultColumns.none
    .always("job", LongType, "Number of the Spark job")
    .add("step", StringType, "What the job does for the statement; null for Spark's own jobs")
    .always("running", BooleanType, "Whether the job is still running")
    .always("tasks", LongType, "Number of tasks in one stage of the job")
    .always("tasks_ended", LongType, "Number of these tasks that have ended")
    .always("rows", LongType, "Number of rows that these tasks have read")
    .attributes

  /**
   * The stages of the Spark jobs run by the statement with this tag (`SparkSession.addTag`), in the
   * order of the jobs. Spark Connect clients cannot see Spark jobs, so they call this function to
   * show progress.
   */
  private def progress(session: shim.SparkSession, tag: String): LogicalPlan =
    LocalRelation.fromExternalRows(progressColumns.map(_.newInstance()),
      for {
        job <- StatementJobs.tagged(session, tag)
        stage <- job.stages
      } yield Row(
        job.number.toLong, JobDescription.stepOf(job.tags).orNull, job.running,
        stage.tasks.toLong, stage.ended.toLong, stage.rows))

  private def describe(name: String, takes: String, example: String)(
      build: (shim.SparkSession, String) => LogicalPlan): Description = {
    def of(arguments: Seq[Expression]): LogicalPlan = {
      val argument = arguments match {
        case Seq(Literal(text, _: StringType)) if text != null => text.toString
        case _ => throw ZOrderErrors.tableFunctionArgument(name, takes, example)
      }
      val session = SparkSession.active.asInstanceOf[shim.SparkSession]
      build(session, argument)
    }
    (FunctionIdentifier(name), new ExpressionInfo(getClass.getName.stripSuffix("$"), name), of)
  }

  /**
   * Resolves the table that a string names. The string may be a bare path, or anything that a
   * statement accepts as a target, such as 'db.t' or "orc.`/t`".
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
