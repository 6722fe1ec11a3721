package io.pyzorder.parser

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, UnaryCommand}

/**
 * A statement as the user wrote it. It is passed to the next parser if the target turns out to be a
 * table in another format.
 *
 * @param text  the text to display: the statement after variable substitution, or a description of
 *              Delta's command
 * @param parse parses the statement with the next parser, or returns the plan that it has already
 *              produced; throws that parser's ParseException
 */
final class OriginalStatement(val text: String, val parse: () => LogicalPlan) {
  override def toString: String = text
}

/**
 * A target that is written as a path. It may still turn out to name a table, for example in a
 * database called `parquet`.
 *
 * @param path     the path as written
 * @param provider the format written before the path, as in ``parquet.`path` ``; None if the path
 *                 is a string literal. In that case, the format is inferred from the files
 */
case class PathTarget(path: String, provider: Option[String]) extends LeafNode {
  override def output: Seq[Attribute] = Nil

  /** Always false; ResolveZOrderStatements replaces the target together with the statement. */
  override lazy val resolved: Boolean = false
}

/**
 * A parsed statement. Spark's analyzer resolves its target, and ResolveZOrderStatements resolves
 * the rest.
 */
sealed trait ZOrderStatement extends UnaryCommand {

  /** The statement's leading keywords, used in messages. */
  def statement: String

  /**
   * A PathTarget, or an UnresolvedTableOrView, which the analyzer replaces with the table or view
   * that it finds.
   */
  def target: LogicalPlan

  def original: OriginalStatement

  override def child: LogicalPlan = target
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = Nil
}

/**
 * OPTIMIZE.
 *
 * @param zOrderBy for each clustering column, its name or the text of an expression; Nil if the
 *                 statement has no ZORDER BY
 * @param isWord   whether `zOrderBy` consists of the word AUTO
 */
case class OptimizeStatement(
    target: LogicalPlan,
    full: Boolean,
    where: Option[Expression],
    zOrderBy: Seq[Either[String, Seq[String]]],
    isWord: Boolean,
    dryRun: Boolean,
    original: OriginalStatement)
    extends ZOrderStatement {
  override def statement: String = "OPTIMIZE"
  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(target = newChild)
}

/**
 * CREATE SKIPPING INDEX. If `columns` is empty, the first columns that can have statistics are
 * indexed, up to spark.sql.zorder.index.maxColumns.
 *
 * @param columns for each column, its name or the text of an expression
 */
case class CreateSkippingIndexStatement(
    target: LogicalPlan,
    ifNotExists: Boolean,
    columns: Seq[Either[String, Seq[String]]],
    original: OriginalStatement)
    extends ZOrderStatement {
  override def statement: String = "CREATE SKIPPING INDEX"
  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(target = newChild)
}

case class RefreshSkippingIndexStatement(target: LogicalPlan, original: OriginalStatement)
    extends ZOrderStatement {
  override def statement: String = "REFRESH SKIPPING INDEX"
  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(target = newChild)
}

case class DescribeSkippingIndexStatement(target: LogicalPlan, original: OriginalStatement)
    extends ZOrderStatement {
  override def statement: String = "DESCRIBE SKIPPING INDEX"
  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(target = newChild)
}

case class DropSkippingIndexStatement(
    target: LogicalPlan,
    ifExists: Boolean,
    original: OriginalStatement)
    extends ZOrderStatement {
  override def statement: String = "DROP SKIPPING INDEX"
  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(target = newChild)
}

/** VACUUM. If `retainHours` is None, spark.sql.zorder.vacuum.retentionHours applies. */
case class VacuumStatement(
    target: LogicalPlan,
    retainHours: Option[Int],
    dryRun: Boolean,
    original: OriginalStatement)
    extends ZOrderStatement {
  override def statement: String = "VACUUM"
  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(target = newChild)
}

case class RestoreStatement(target: LogicalPlan, original: OriginalStatement)
    extends ZOrderStatement {
  override def statement: String = "RESTORE"
  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(target = newChild)
}
