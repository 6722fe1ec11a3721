package io.pyzorder.parser

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, UnaryCommand}

/**
 * A statement's text and what the next parser makes of it: a table of another format goes there.
 *
 * @param text  as the user wrote it
 * @param parse the next parser's plan of the text; throws its ParseException
 */
final class OriginalStatement(val text: String, val parse: () => LogicalPlan) {
  override def toString: String = text
}

/**
 * The target of a statement that was named by a path, or may have been.
 *
 * @param path     as written
 * @param provider `parquet.` or `orc.` stood before it; None: a string, the files tell the format
 */
case class PathTarget(path: String, provider: Option[String]) extends LeafNode {
  override def output: Seq[Attribute] = Nil

  /** Never resolved by itself: ResolveZOrderStatements takes it away with the statement. */
  override lazy val resolved: Boolean = false
}

/** A statement as parsed. The analyzer looks its target up, ResolveZOrderStatements the rest. */
sealed trait ZOrderStatement extends UnaryCommand {

  /** How it begins, for messages. */
  def statement: String

  /** UnresolvedTableOrView or PathTarget; later what the analyzer makes of it. */
  def target: LogicalPlan

  def original: OriginalStatement

  override def child: LogicalPlan = target
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = Nil
}

/** OPTIMIZE. `zOrderBy` empty: none was written. */
case class OptimizeStatement(
    target: LogicalPlan,
    full: Boolean,
    where: Option[Expression],
    zOrderBy: Seq[Seq[String]],
    dryRun: Boolean,
    original: OriginalStatement)
    extends ZOrderStatement {
  override def statement: String = "OPTIMIZE"
  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(target = newChild)
}

/** CREATE SKIPPING INDEX. `columns` empty: every column that can have statistics. */
case class CreateSkippingIndexStatement(
    target: LogicalPlan,
    ifNotExists: Boolean,
    columns: Seq[Seq[String]],
    original: OriginalStatement)
    extends ZOrderStatement {
  override def statement: String = "CREATE SKIPPING INDEX"
  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(target = newChild)
}

/** REFRESH SKIPPING INDEX. */
case class RefreshSkippingIndexStatement(target: LogicalPlan, original: OriginalStatement)
    extends ZOrderStatement {
  override def statement: String = "REFRESH SKIPPING INDEX"
  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(target = newChild)
}

/** DESCRIBE SKIPPING INDEX. */
case class DescribeSkippingIndexStatement(target: LogicalPlan, original: OriginalStatement)
    extends ZOrderStatement {
  override def statement: String = "DESCRIBE SKIPPING INDEX"
  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(target = newChild)
}

/** DROP SKIPPING INDEX. */
case class DropSkippingIndexStatement(
    target: LogicalPlan,
    ifExists: Boolean,
    original: OriginalStatement)
    extends ZOrderStatement {
  override def statement: String = "DROP SKIPPING INDEX"
  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(target = newChild)
}

/** VACUUM. `retainHours` None: the setting `spark.sql.zorder.vacuum.retentionHours`. */
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

/** RESTORE … TO BEFORE OPTIMIZE. */
case class RestoreStatement(target: LogicalPlan, original: OriginalStatement)
    extends ZOrderStatement {
  override def statement: String = "RESTORE"
  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(target = newChild)
}
