package io.pyzorder.parser

import java.util.Locale

import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, OneRowRelation, Project}
import org.apache.spark.sql.internal.VariableSubstitution
import org.apache.spark.sql.pyzorder.DelegatingParser
import org.apache.spark.sql.types.StringType
import org.slf4j.LoggerFactory

import io.pyzorder.common.{ColumnNames, TableFormats, Tokens, ZOrderErrors}

/**
 * The session's SQL parser. It turns pyzorder's statements into plans and passes all other
 * statements to the next parser unchanged.
 */
final class ZOrderSqlParser(next: ParserInterface) extends DelegatingParser(next) {

  /** `parseNext` parses a statement with the next parser and the caller's parameters. */
  override protected def parse(sql: String, parseNext: String => LogicalPlan): LogicalPlan =
    if (ZOrderSqlParser.mayBeOurs(sql)) ours(sql, parseNext) else parseNext(sql)

  /**
   * Parses a statement with pyzorder's grammar or, if that fails, with the next parser. If both
   * fail, throws the error from pyzorder's grammar.
   */
  private def ours(written: String, parseNext: String => LogicalPlan): LogicalPlan = {
    val sql = new VariableSubstitution().substitute(written)
    StatementGrammar.parse(sql) match {
      case Right(parsed) =>
        plan(parsed, sql, new OriginalStatement(sql, () => parseNext(written)), parseNext)
      case Left(error) =>
        try parseNext(written)
        catch { case _: ParseException => throw error }
    }
  }

  private def plan(
      parsed: ParsedStatement,
      sql: String,
      original: OriginalStatement,
      parseNext: String => LogicalPlan): LogicalPlan = {
    def on(target: ParsedTarget, command: String): LogicalPlan =
      ZOrderSqlParser.targetPlan(target, command, string)
    parsed match {
      case ParsedOptimize(target, full, where, columns, isWord, dryRun) =>
        val predicate = where.map { case (start, end) =>
          condition(sql.substring(start, end), parseNext)
        }
        OptimizeStatement(
          on(target, "OPTIMIZE"), full, predicate, ColumnNames.textOf(columns, sql), isWord,
          dryRun, original)
      case ParsedCreateIndex(target, ifNotExists, columns) =>
        val plan = on(target, "CREATE SKIPPING INDEX")
        CreateSkippingIndexStatement(
          plan, ifNotExists, ColumnNames.textOf(columns, sql), original)
      case ParsedRefreshIndex(target) =>
        RefreshSkippingIndexStatement(on(target, "REFRESH SKIPPING INDEX"), original)
      case ParsedDescribeIndex(target) =>
        DescribeSkippingIndexStatement(on(target, "DESCRIBE SKIPPING INDEX"), original)
      case ParsedDropIndex(target, ifExists) =>
        DropSkippingIndexStatement(on(target, "DROP SKIPPING INDEX"), ifExists, original)
      case ParsedVacuum(target, retain, dryRun) =>
        VacuumStatement(on(target, "VACUUM"), retain, dryRun, original)
      case ParsedRestore(target) => RestoreStatement(on(target, "RESTORE"), original)
    }
  }

  /**
   * Parses a predicate as part of a query, because some parsers bind parameter markers only in
   * whole statements.
   */
  private def condition(text: String, parseNext: String => LogicalPlan): Expression = {
    def noPredicate(near: String): Nothing =
      throw ZOrderErrors.syntax(near, "expected one predicate", StatementGrammar.usages("OPTIMIZE"))
    try {
      parseNext(s"SELECT 1 WHERE $text\n") match {
        case Project(_, Filter(predicate, OneRowRelation())) => predicate
        case _ => noPredicate(text)
      }
    } catch {
      case other: ParseException if other.getMessageParameters.containsKey("error") =>
        // The error's position refers to the query that was built here, not to the user's
        // statement.
        noPredicate(other.getMessageParameters.get("error").stripPrefix("'").stripSuffix("'"))
    }
  }

  /** The value of a string literal under the session's rules for escape sequences. */
  private def string(literal: String): String = next.parseExpression(literal) match {
    case Literal(value, _: StringType) => value.toString
    case _ => throw ZOrderErrors.syntax(literal, "expected a table name or a path in single quotes",
        "parquet.`path`, orc.`path` or 'path'")
  }
}

object ZOrderSqlParser {

  /** Wraps Spark's own parser, or the parser of the extension that is listed before pyzorder's. */
  def before(next: ParserInterface): ZOrderSqlParser = {
    val name = next.getClass.getSimpleName
    if (name.startsWith("Iceberg") || name.startsWith("Delta")) {
      LoggerFactory.getLogger(classOf[ZOrderSqlParser]).warn(
        "List io.pyzorder.ZOrderExtensions before Delta's and Iceberg's extensions in " +
          "spark.sql.extensions. Otherwise, Iceberg procedures that take a sort order fail, and " +
          "EXPLAIN does not show which files are skipped")
    }
    new ZOrderSqlParser(next)
  }

  /** The plan node for a parsed target. `string` returns the value of a string literal. */
  def targetPlan(target: ParsedTarget, command: String, string: String => String): LogicalPlan =
    target match {
      case QuotedTarget(literal) => PathTarget(string(literal), None)
      case NamedTarget(Seq(format, path)) if pathFormats(format.toLowerCase(Locale.ROOT)) =>
        PathTarget(path, Some(format))
      case NamedTarget(parts) => UnresolvedTableOrView(parts, command, allowTempView = true)
    }

  private val pathFormats = Set("parquet", "orc") ++ TableFormats.foreignExtensions.keySet

  /** Whether the statement's first words could begin a pyzorder statement. */
  private[parser] def mayBeOurs(sql: String): Boolean = {
    var at = Tokens.skipBlank(sql, 0)
    at < sql.length && {
      val first = Tokens.tokenAt(sql, at)
      if (first.is("OPTIMIZE") || first.is("VACUUM") || first.is("RESTORE")) {
        true
      } else if (first.is("CREATE") || first.is("REFRESH") || first.is("DESCRIBE") ||
        first.is("DESC") || first.is("DROP")) {
        at = Tokens.skipBlank(sql, first.end)
        at < sql.length && Tokens.tokenAt(sql, at).is("SKIPPING")
      } else {
        false
      }
    }
  }
}
