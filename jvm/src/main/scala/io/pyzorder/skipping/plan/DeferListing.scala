package io.pyzorder.skipping.plan

import java.util.Locale

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.{QualifiedTableName, TableIdentifier}
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.{InsertIntoStatement, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.command.DDLUtils
import org.apache.spark.sql.execution.datasources.{DataSourceUtils, FileFormat, HadoopFsRelation}
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.{ParquetFileFormat, ParquetOptions}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.SQLConf.HiveCaseSensitiveInferenceMode
import org.apache.spark.sql.pyzorder.{shim, CatalogAccess}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.pyzorder.common.Staleness
import io.pyzorder.index.store.IndexStore
import io.pyzorder.publish.reading.{DeferredFileIndex, SnapshotListing}
import io.pyzorder.storage.TableFolder
import io.pyzorder.storage.metadata.ListedMetadata

/**
 * Avoids listing a catalog table whose files may be taken from its index (see the setting
 * index.maxStaleness). Spark lists an unpartitioned table when it resolves the table's name, and
 * caches the relation under that name. This rule runs earlier, with the rules that resolve hints,
 * and caches a relation that lists its files only when they are requested.
 *
 * In all other respects, the relation must be the same as the one that Spark would create. The rule
 * therefore applies only to tables that have a schema in the catalog, are not bucketed, and have
 * all their files directly in the table's folder. A table created for Hive (STORED AS) must also be
 * one that Spark reads with its own data source; Spark caches its relation in the same place.
 * Tables with partitions in the catalog do not need the rule, because Spark lists them only when it
 * needs their files.
 *
 * The rule also removes a cached relation if another session has changed the table's location, for
 * example with an OPTIMIZE that switches the table to a new folder, or has dropped the table and
 * created it again. Otherwise, this session would continue to use the old folder or the old format.
 */
case class DeferListing(session: shim.SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan.foreach {
      case relation: UnresolvedRelation => prepare(relation)
      case insert: InsertIntoStatement => insert.table match {
          case target: UnresolvedRelation => prepare(target)
          case _ =>
        }
      case _ =>
    }
    plan
  }

  private def prepare(relation: UnresolvedRelation): Unit =
    // Errors are ignored, because Spark itself later reports an invalid name or table.
    try
      for (identifier <- identifierOf(relation.multipartIdentifier)
        if catalog.tableExists(identifier)) {
        val table = catalog.getTableMetadata(identifier)
        val name = QualifiedTableName(
          CatalogAccess.sessionCatalog, table.database, table.identifier.table)
        if (isOutdated(catalog.getCachedTable(name), table)) catalog.invalidateCachedTable(name)
        // Spark adds an option to the target of an INSERT, but removes it before it reads options.
        val hasOptions = !relation.clearWritePrivileges.options.isEmpty
        if (!relation.isStreaming && !hasOptions && catalog.getCachedTable(name) == null)
          relationOf(table).foreach(catalog.cacheTable(name, _))
      }
    catch { case NonFatal(_) => }

  private def isOutdated(cached: LogicalPlan, now: CatalogTable): Boolean = cached match {
    case relation: LogicalRelation =>
      relation.catalogTable.exists(known =>
        known.storage.locationUri != now.storage.locationUri ||
          known.createTime != now.createTime || known.provider != now.provider)
    case _ => false
  }

  private def catalog = session.sessionState.catalog

  /** The identifier of a table in the session catalog; None for any other relation. */
  private def identifierOf(parts: Seq[String]): Option[TableIdentifier] = {
    val current = session.sessionState.catalogManager.currentCatalog.name()
    parts match {
      case _ if catalog.isTempView(parts) => None
      case Seq(table) if current == CatalogAccess.sessionCatalog =>
        Some(TableIdentifier(table, Some(catalog.getCurrentDatabase)))
      case Seq(database, table) if current == CatalogAccess.sessionCatalog =>
        Some(TableIdentifier(table, Some(database)))
      case Seq(CatalogAccess.sessionCatalog, database, table) =>
        Some(TableIdentifier(table, Some(database)))
      case _ => None
    }
  }

  private def relationOf(table: CatalogTable): Option[LogicalRelation] =
    for {
      provider <- providerOf(table)
      format <- formatOf(provider)
      if table.partitionColumnNames.isEmpty && table.bucketSpec.isEmpty && table.schema.nonEmpty
      location <- table.storage.locationUri.map(new Path(_))
      staleness = Staleness.of(session.sessionState.conf, table.properties)
      if staleness.remembers
      conf = session.sessionState.newHadoopConf()
      fs = location.getFileSystem(conf)
      folder = new TableFolder(fs.makeQualified(location))
      ref <- IndexStore.latest(conf, ListedMetadata.newest(conf, folder))
      if ref.coverage.exists(known => known.isWhole && staleness.allows(known.listedAt))
      snapshot <- IndexStore.load(session, ref)
      listing <- SnapshotListing.of(session, ref)
      if listing.isFlat(folder.root)
    } yield {
      val options = optionsOf(table, provider)
      val size = (0 until snapshot.numFiles).iterator.map(snapshot.size).sum
      val index = new DeferredFileIndex(session, folder.root, options, new StructType(), size)
      LogicalRelation(
        HadoopFsRelation(
          index, new StructType(), CatalogAccess.asNullable(table.schema), None, format,
          CaseInsensitiveMap(options))(session),
        table)
    }

  /** The name of the data source with which Spark reads the table. */
  private def providerOf(table: CatalogTable): Option[String] = {
    val conf = session.sessionState.conf
    if (DDLUtils.isDatasourceTable(table)) table.provider.map(_.toLowerCase(Locale.ROOT))
    else {
      val serde = table.storage.serde.fold("")(_.toLowerCase(Locale.ROOT))
      val infersSchema = !table.schemaPreservesCase &&
        conf.caseSensitiveInferenceMode != HiveCaseSensitiveInferenceMode.NEVER_INFER
      Seq("parquet", "orc").find(serde.contains).filter(provider =>
        !infersSchema && conf.getConfString(DeferListing.Converts(provider), "true").toBoolean)
    }
  }

  private def formatOf(provider: String): Option[FileFormat] = provider match {
    case "parquet" => Some(new ParquetFileFormat)
    case "orc" if session.sessionState.conf.getConf(SQLConf.ORC_IMPLEMENTATION) == "native" =>
      Some(new OrcFileFormat)
    case _ => None
  }

  /** The options of the relation that Spark would create. */
  private def optionsOf(table: CatalogTable, provider: String): Map[String, String] =
    if (DDLUtils.isDatasourceTable(table))
      DataSourceUtils.generateDatasourceOptions(CaseInsensitiveStringMap.empty, table)
    else {
      val own = table.properties.filter { case (key, _) =>
        key.startsWith(s"$provider.") || key.contains(s".$provider.")
      }
      val merges = session.sessionState.conf.getConfString(DeferListing.MergesSchemas, "false")
      val added =
        if (provider == "parquet") Map(ParquetOptions.MERGE_SCHEMA -> merges) else Map.empty
      (own ++ table.storage.properties ++ added).filterNot(_._1.equalsIgnoreCase("path"))
    }
}

object DeferListing {

  /** The settings that let Spark read Hive's tables with its own data sources, by data source. */
  private val Converts: Map[String, String] = Map(
    "parquet" -> "spark.sql.hive.convertMetastoreParquet",
    "orc" -> "spark.sql.hive.convertMetastoreOrc")

  private val MergesSchemas = "spark.sql.hive.convertMetastoreParquet.mergeSchema"
}
