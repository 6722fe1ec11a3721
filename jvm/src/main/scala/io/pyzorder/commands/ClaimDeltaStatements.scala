package io.pyzorder.commands

import java.util.Locale

import org.apache.spark.sql.catalyst.analysis.{ResolvedTable => ResolvedCatalogTable}
import org.apache.spark.sql.catalyst.analysis.{UnresolvedAttribute, UnresolvedTable}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.pyzorder.{shim, CatalogAccess}

import io.pyzorder.catalog.TargetLookup
import io.pyzorder.common.TableFormats
import io.pyzorder.parser.{OptimizeStatement, OriginalStatement, PathTarget, VacuumStatement}

/**
 * Claims OPTIMIZE and VACUUM statements that Delta's parser has already parsed. If Delta's
 * extension is listed after pyzorder's, Delta's parser runs first and parses every such statement
 * that it understands, even if the target is not a Delta table. If the target is a path or a
 * Parquet or ORC table, this rule substitutes pyzorder's statement. If a path turns out to be a
 * Delta table, ResolveZOrderStatements returns Delta's command.
 *
 * pyzorder does not depend on Delta. It recognizes Delta's commands by class name and reads them
 * through reflection. If the reflection fails, the command is left to Delta, which reports that the
 * table is not a Delta table.
 */
case class ClaimDeltaStatements(session: shim.SparkSession) extends Rule[LogicalPlan] {
  import ClaimDeltaStatements._

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case command if commands(command.getClass.getName) && command.getTagValue(left).isEmpty =>
      try claimed(command).getOrElse(command)
      catch { case _: ReflectiveOperationException | _: ClassCastException => command }
  }

  private def claimed(command: LogicalPlan): Option[LogicalPlan] =
    command.children.headOption.flatMap(target).flatMap { target =>
      val original = new OriginalStatement(command.simpleString(1000), () => giveBack(command))
      if (command.getClass.getName == optimize) Some(ofOptimize(command, target, original))
      else ofVacuum(command, target, original)
    }

  private def ofOptimize(
      command: LogicalPlan,
      target: LogicalPlan,
      original: OriginalStatement): LogicalPlan = {
    val where = read[Seq[String]](command, "userPartitionPredicates")
    val columns = read[Seq[UnresolvedAttribute]](command, "zOrderBy").map(_.nameParts)
    val full = read[Boolean](read[AnyRef](command, "optimizeContext"), "isFull")
    val predicate = where.reduceOption((a, b) => s"($a) AND ($b)")
      .map(session.sessionState.sqlParser.parseExpression)
    val isWord = columns.map(_.map(_.toUpperCase(Locale.ROOT))) == Seq(Seq("AUTO"))
    OptimizeStatement(
      target, full, predicate, columns.map(Right(_)), isWord, dryRun = false, original)
  }

  /** Returns None if the statement uses a feature that only Delta supports. */
  private def ofVacuum(
      command: LogicalPlan,
      target: LogicalPlan,
      original: OriginalStatement): Option[LogicalPlan] = {
    val hours = read[Option[Double]](command, "horizonHours")
    val others = Seq("inventoryTable", "inventoryQuery", "vacuumType")
    if (others.exists(read[Option[Any]](command, _).nonEmpty) || !hours.forall(_.isWhole)) None
    else Some(VacuumStatement(
        target, hours.map(_.toInt), read[Boolean](command, "dryRun"), original))
  }

  /**
   * Converts the target of a Delta command to the form that pyzorder's statements use. Returns None
   * if the command is left to Delta.
   */
  private def target(named: LogicalPlan): Option[LogicalPlan] = named match {
    case table: ResolvedCatalogTable =>
      val plain = CatalogAccess.catalogTable(table.table).flatMap(TargetLookup.plainProvider)
      plain.map(_ => table)
    case UnresolvedParts(Seq(format, path)) if TableFormats.isPlain(format) =>
      Some(PathTarget(path, Some(format)))
    case path if paths(path.getClass.getName) => Some(PathTarget(read[String](path, "path"), None))
    case _ => None
  }

  private def giveBack(command: LogicalPlan): LogicalPlan = {
    command.setTagValue(left, ())
    command
  }
}

object ClaimDeltaStatements {
  private val optimize = "org.apache.spark.sql.delta.commands.OptimizeTableCommand"
  private val commands = Set(optimize, "io.delta.tables.execution.VacuumTableCommand")
  private val paths = Set("UnresolvedPathBasedDeltaTable", "UnresolvedPathBasedTable")
    .map("org.apache.spark.sql.delta." + _)

  /** Marks commands that are left to Delta. */
  private val left = TreeNodeTag[Unit]("zorder.left_to_delta")

  /** Reads a field of a case class through reflection. */
  private def read[T](of: AnyRef, field: String): T =
    of.getClass.getMethod(field).invoke(of).asInstanceOf[T]

  private object UnresolvedParts {
    def unapply(plan: LogicalPlan): Option[Seq[String]] = plan match {
      case table: UnresolvedTable => Some(table.multipartIdentifier)
      case _ => None
    }
  }
}
