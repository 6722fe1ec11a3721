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
import org.apache.spark.sql.execution.datasources.{DataSourceUtils, FileFormat, FileIndex}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.{ParquetFileFormat, ParquetOptions}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.SQLConf.HiveCaseSensitiveInferenceMode
import org.apache.spark.sql.pyzorder.{shim, CatalogAccess}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.pyzorder.common.{Staleness, ZOrderConf}
import io.pyzorder.index.store.{IndexStore, SnapshotRef}
import io.pyzorder.publish.reading.{DeferredFileIndex, JournaledListing, SnapshotListing}
import io.pyzorder.storage.{FileSystems, TableFolder}
import io.pyzorder.storage.metadata.ListedMetadata

/**
 * Spark lists an unpartitioned table when it resolves the table's name, and caches the relation
 * under that name. This rule runs earlier, with the rules that resolve hints. If a table has an
 * index, or is the target of one of pyzorder's statements, the rule caches a relation itself, so
 * that Spark does not list the table:
 *
 *   - If the files may be taken from the index (see the setting index.maxStaleness), the relation
 *     lists its files only when they are requested.
 *   - Otherwise, the table is listed, but only once. If Spark listed it, pyzorder would list it
 *     again, because a listing must be compared with the journal before and after it is made.
 *
 * In all other respects, the relation must be the same as the one that Spark would create. The rule
 * therefore applies only to tables that have a schema in the catalog, are not bucketed, have all
 * their files directly in the table's folder, and are not written by a streaming query, whose log
 * says which files to read. (A table with such a log cannot be indexed, so the log can only be
 * newer than the index.) A table created for Hive (STORED AS) must also be one that Spark reads
 * with its own data source; Spark caches its relation in the same place. Tables with partitions in
 * the catalog do not need the rule, because Spark lists them only when it needs their files.
 *
 * The rule also removes a cached relation if another session has changed the table's location, for
 * example with an OPTIMIZE that switches the table to a new folder, has changed its columns, or has
 * dropped the table and created it again. Otherwise, this session would continue to use the old
 * folder, the old columns or the old format. (Spark may have inferred the columns of a table that
 * was created for Hive, so they may differ from those in the catalog.)
 */
case class CacheRelations(session: shim.SparkSession) extends Rule[LogicalPlan] {

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
        if (isOutdated(catalog.getCachedTable(nameOf(table)), table))
          catalog.invalidateCachedTable(nameOf(table))
        // Spark adds an option to the target of an INSERT, but removes it before it reads options.
        val hasOptions = !relation.clearWritePrivileges.options.isEmpty
        if (!relation.isStreaming && !hasOptions) cache(table, evenWithoutIndex = false)
      }
    catch { case NonFatal(_) => }

  /**
   * Caches the relation of the table that one of pyzorder's statements names, even if the table has
   * no index yet.
   */
  def prepareTarget(table: CatalogTable): Unit =
    try cache(table, evenWithoutIndex = true)
    catch { case NonFatal(_) => } // as above

  private def cache(table: CatalogTable, evenWithoutIndex: Boolean): Unit =
    if (catalog.getCachedTable(nameOf(table)) == null)
      relationOf(table, evenWithoutIndex).foreach(catalog.cacheTable(nameOf(table), _))

  private def nameOf(table: CatalogTable): QualifiedTableName =
    QualifiedTableName(CatalogAccess.sessionCatalog, table.database, table.identifier.table)

  private def isOutdated(cached: LogicalPlan, now: CatalogTable): Boolean = cached match {
    case relation: LogicalRelation =>
      relation.catalogTable.exists(known =>
        known.storage.locationUri != now.storage.locationUri ||
          known.createTime != now.createTime || known.provider != now.provider ||
          DDLUtils.isDatasourceTable(now) && known.schema != now.schema)
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

  private def relationOf(table: CatalogTable, evenWithoutIndex: Boolean): Option[LogicalRelation] =
    for {
      provider <- providerOf(table)
      format <- formatOf(provider)
      if table.partitionColumnNames.isEmpty && table.bucketSpec.isEmpty && table.schema.nonEmpty
      schema = CatalogAccess.readSchema(session, table.schema, format)
      location <- table.storage.locationUri.map(new Path(_))
      if !CacheRelations.isPattern(location)
      conf = session.sessionState.newHadoopConf()
      fs = location.getFileSystem(conf)
      folder = new TableFolder(fs.makeQualified(location))
      metadata = ListedMetadata.newest(conf, folder)
      ref = IndexStore.latest(conf, metadata)
      if ref.isDefined || evenWithoutIndex
      options = optionsOf(table, provider)
      staleness = Staleness.of(session.sessionState.conf, table.properties)
      index <- ref.flatMap(deferred(_, options, staleness)).orElse {
        if (!ZOrderConf.journalOverlay.get(session.sessionState.conf) ||
          FileSystems.status(fs, folder.streamLog).isDefined) None
        else JournaledListing.sparksIndex(session, options, metadata, ref)
      }
    } yield LogicalRelation(
      HadoopFsRelation(
        index, new StructType(), schema, None, format,
        CaseInsensitiveMap(options))(session),
      table)

  /** A file index that lists nothing until files are requested, if `staleness` allows that. */
  private def deferred(
      ref: SnapshotRef,
      options: Map[String, String],
      staleness: Staleness): Option[FileIndex] =
    for {
      known <- ref.coverage
      if staleness.remembers && known.isWhole && staleness.allows(known.listedAt)
      snapshot <- IndexStore.load(session, ref)
      root = ref.folder.root
      listing <- SnapshotListing.of(session, ref)
      if listing.isFlat(root)
    } yield {
      val size = (0 until snapshot.numFiles).iterator.map(snapshot.size).sum
      new DeferredFileIndex(session, root, options, new StructType(), size)
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
        !infersSchema && conf.getConfString(CacheRelations.Converts(provider), "true").toBoolean)
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
      val merges = session.sessionState.conf.getConfString(CacheRelations.MergesSchemas, "false")
      val added =
        if (provider == "parquet") Map(ParquetOptions.MERGE_SCHEMA -> merges) else Map.empty
      (own ++ table.storage.properties ++ added).filterNot(_._1.equalsIgnoreCase("path"))
    }
}

object CacheRelations {

  /** Whether Spark would read the paths that match the location, instead of the location itself. */
  private def isPattern(location: Path): Boolean = location.toString.exists("{}[]*?\\".contains(_))

  /** The settings that let Spark read Hive's tables with its own data sources, by data source. */
  private val Converts: Map[String, String] = Map(
    "parquet" -> "spark.sql.hive.convertMetastoreParquet",
    "orc" -> "spark.sql.hive.convertMetastoreOrc")

  private val MergesSchemas = "spark.sql.hive.convertMetastoreParquet.mergeSchema"
}
