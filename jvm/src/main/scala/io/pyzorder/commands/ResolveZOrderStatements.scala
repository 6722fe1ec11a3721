package io.pyzorder.commands

import java.util.Locale

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{ResolvedPersistentView, ResolvedTempView}
import org.apache.spark.sql.catalyst.analysis.{ResolvedTable => ResolvedCatalogTable}
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.{Identifier, Table}
import org.apache.spark.sql.pyzorder.{shim, CatalogAccess}

import io.pyzorder.catalog.{ClusteringColumns, PartitionPredicate, ResolvedTable, StoredTypes}
import io.pyzorder.catalog.TargetLookup
import io.pyzorder.commands.optimize.{Clustering, OptimizeTableCommand}
import io.pyzorder.common.{TableFormats, ZOrderErrors}
import io.pyzorder.layout.write.InputRelation
import io.pyzorder.parser.{CreateSkippingIndexStatement, DescribeSkippingIndexStatement}
import io.pyzorder.parser.{DropSkippingIndexStatement, OptimizeStatement, PathTarget}
import io.pyzorder.parser.{RefreshSkippingIndexStatement, RestoreStatement, VacuumStatement}
import io.pyzorder.parser.ZOrderStatement

/**
 * Turns a parsed statement into its command once the analyzer has resolved the target. This rule
 * reports unusable targets and errors in OPTIMIZE statements before anything runs. However, the
 * columns of a CREATE SKIPPING INDEX statement are not checked until the command runs. A statement
 * on a Delta, Iceberg or Hudi table is passed on to the next parser.
 */
case class ResolveZOrderStatements(session: shim.SparkSession) extends Rule[LogicalPlan] {

  private def lookup: TargetLookup = new TargetLookup(session)

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case statement: ZOrderStatement =>
      statement.target match {
        case ResolvedCatalogTable(_, identifier, table, _) => ofTable(statement, identifier, table)
        case view: ResolvedTempView => throw ZOrderErrors.view(view.identifier.name)
        case view: ResolvedPersistentView => throw ZOrderErrors.view(view.identifier.toString)
        case target: PathTarget => ofPath(statement, target)
        case missing: UnresolvedTableOrView => // Spark looks up names before it applies this rule
          TargetLookup.checkNoPath(missing.multipartIdentifier)
          statement
        case _ => statement
      }
  }

  private def ofTable(s: ZOrderStatement, identifier: Identifier, table: Table): LogicalPlan =
    CatalogAccess.catalogTable(table) match {
      case Some(entry) => ofEntry(s, entry)
      case None =>
        val provider = Option(table.properties.get("provider")).getOrElse(table.getClass.getName)
        foreign(provider.toLowerCase(Locale.ROOT)) match {
          case Some(format) => toOwner(s, identifier.toString, format)
          case None => throw ZOrderErrors.unsupportedProvider(identifier.toString, provider)
        }
    }

  private def ofEntry(s: ZOrderStatement, entry: CatalogTable): LogicalPlan = {
    val name = entry.identifier.copy(catalog = None).quotedString
    if (entry.tableType == CatalogTableType.VIEW) throw ZOrderErrors.view(name)
    val owner = TargetLookup.foreignProvider(entry)
      .orElse(entry.storage.locationUri.flatMap(uri => lookup.foreignFormat(new Path(uri))))
    owner match {
      case Some(format) => toOwner(s, name, format)
      case None => command(s, lookup.ofCatalog(entry))
    }
  }

  /**
   * In ``parquet.`path` ``, a table named `path` in a database named `parquet` takes precedence
   * over the folder.
   */
  private def ofPath(s: ZOrderStatement, target: PathTarget): LogicalPlan = {
    val catalog = session.sessionState.catalog
    val asTable = target.provider.filter(catalog.databaseExists)
      .map(database => TableIdentifier(target.path, Some(database))).filter(catalog.tableExists)
    asTable match {
      case Some(table) => ofEntry(s, catalog.getTableMetadata(table))
      case None =>
        val format = target.provider.map(_.toLowerCase(Locale.ROOT))
        val owner = format.flatMap(foreign)
          .orElse(lookup.foreignFormat(lookup.qualified(lookup.pathOf(target.path))))
        owner match {
          case Some(name) => toOwner(s, s"'${target.path}'", name)
          case None => command(s, lookup.ofPath(target.path, format))
        }
    }
  }

  private def foreign(provider: String): Option[String] =
    TableFormats.foreignExtensions.keys.find(provider.contains)

  /** The next parser's plan for the statement. The analyzer continues with this plan. */
  private def toOwner(s: ZOrderStatement, table: String, format: String): LogicalPlan =
    try s.original.parse()
    catch {
      case _: ParseException =>
        throw ZOrderErrors.foreignTable(table, format, TableFormats.foreignExtensions(format))
    }

  private def command(statement: ZOrderStatement, table: ResolvedTable): LogicalPlan =
    statement match {
      case s: OptimizeStatement =>
        table.catalogTable.flatMap(_.bucketSpec).foreach { buckets =>
          throw ZOrderErrors.bucketedTable(table.name, buckets.bucketColumnNames)
        }
        val choosing = InputRelation.choosing(table.options)
        if (choosing.nonEmpty) throw ZOrderErrors.filteredTable(table.name, choosing)
        lookup.checkOutermost(table)
        StoredTypes.check(session, table)
        val clustering =
          if (s.zOrderBy.isEmpty) Clustering.default(session, table)
          else named(s, table)
        if (clustering == Clustering.By(Nil) && s.full) {
          throw ZOrderErrors.fullWithoutColumns(table.name)
        }
        val where = s.where.map(PartitionPredicate.resolve(session, table, _))
        OptimizeTableCommand(table, where, clustering, s.full, s.dryRun)
      case s: CreateSkippingIndexStatement =>
        CreateSkippingIndexCommand(table, s.ifNotExists, s.columns)
      case _: RefreshSkippingIndexStatement => RefreshSkippingIndexCommand(table)
      case _: DescribeSkippingIndexStatement => DescribeSkippingIndexCommand(table)
      case s: DropSkippingIndexStatement => DropSkippingIndexCommand(table, s.ifExists)
      case s: VacuumStatement => VacuumCommand(table, s.retainHours, s.dryRun)
      case _: RestoreStatement => RestoreCommand(table)
    }

  /** The clustering that ZORDER BY names. */
  private def named(s: OptimizeStatement, table: ResolvedTable): Clustering = {
    val isAuto = s.isWord && s.zOrderBy.head.exists(_.head.equalsIgnoreCase("auto"))
    if (isAuto && ClusteringColumns.isAuto("auto", table.schema.fieldNames.toSeq))
      Clustering.Auto(isDeclared = false)
    else Clustering.By(
      ClusteringColumns.resolve(session, table, s.zOrderBy),
      if (isAuto) Some(s"AUTO is a column of ${table.name}, so the table is clustered by it.")
      else None)
  }
}
