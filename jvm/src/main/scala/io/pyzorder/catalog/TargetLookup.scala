package io.pyzorder.catalog

import java.io.IOException
import java.util.Locale

import scala.annotation.tailrec
import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{UnresolvedRelation, UnresolvedTableOrView}
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{CatalogFileIndex, DataSource, FileFormat}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.pyzorder.{shim, CatalogAccess}

import io.pyzorder.common.{TableFormats, ZOrderErrors}
import io.pyzorder.layout.write.TypeConflicts
import io.pyzorder.parser.PathTarget
import io.pyzorder.skipping.plan.CacheRelations
import io.pyzorder.storage.{FileSystems, TableFolder}

/**
 * Resolves a catalog entry or a path to a ResolvedTable, or throws an error that explains why it
 * cannot be resolved.
 */
final class TargetLookup(session: shim.SparkSession) {

  /** Resolves a catalog entry, which must be stored as plain Parquet or ORC. */
  def ofCatalog(entry: CatalogTable): ResolvedTable = {
    val name = entry.identifier.copy(catalog = None).quotedString
    val provider = TargetLookup.plainProvider(entry).getOrElse {
      throw ZOrderErrors.unsupportedProvider(name, TargetLookup.storedAs(entry))
    }
    val root = qualified(new Path(entry.location))
    if (FileSystems.status(storeOf(root), root).exists(_.isFile)) {
      throw ZOrderErrors.pathIsFile(root.toString)
    }
    checkFolder(root)
    ResolvedTable(
      Some(entry.identifier.copy(catalog = Some(CatalogAccess.sessionCatalog))),
      root,
      provider,
      currentRelation(entry, provider, root),
      entry.properties,
      Some(entry))
  }

  /**
   * The relation of the table at its current location. Spark may have cached an outdated relation,
   * because its cache is not updated when another session changes the table's location.
   */
  private def currentRelation(
      entry: CatalogTable,
      provider: String,
      root: Path): HadoopFsRelation = {
    val known = relationOf(entry, provider)
    if (known.location.rootPaths.map(qualified).contains(root)) known
    else {
      session.catalog.refreshTable(entry.identifier.copy(catalog = None).quotedString)
      relationOf(entry, provider)
    }
  }

  /** Resolves a table's folder. If `provider` is None, the format is inferred from the files. */
  def ofPath(text: String, provider: Option[String]): ResolvedTable = {
    // If the folder is deleted or replaced during a lookup, the next lookup notices it.
    @tailrec
    def attempt(left: Int): ResolvedTable =
      (try Right(lookUp(text, provider))
      catch { case failure: IOException => Left(failure) }) match {
        case Right(table) => table
        case Left(failure) =>
          val root = qualified(pathOf(text))
          if (!storeOf(root).exists(root)) throw ZOrderErrors.pathNotFound(root.toString)
          if (left == 1) throw ZOrderErrors.unreadable(text, failure)
          attempt(left - 1)
      }
    attempt(TargetLookup.MaxTries)
  }

  private def lookUp(text: String, provider: Option[String]): ResolvedTable = {
    val root = qualified(pathOf(text))
    val fs = storeOf(root)
    if (!fs.exists(root)) throw ZOrderErrors.pathNotFound(root.toString)
    if (!fs.getFileStatus(root).isDirectory) throw ZOrderErrors.pathIsFile(text)
    if (root.getName.indexOf('=') > 0) {
      throw ZOrderErrors.pathInsideTable(text, TargetLookup.tableFolder(root).toString)
    }
    checkFolder(root)
    DataFormat.checkLinks(fs, root)
    val known = provider.getOrElse(DataFormat.ofFolder(fs, root))
    DataFormat.special(fs, root, known).foreach { pipe =>
      throw ZOrderErrors.unreadable(pipe.toString, new IOException("it is not a regular file"))
    }
    val source = DataSource(
      session,
      className = known,
      paths = Seq(root.toString),
      options = Map("mergeSchema" -> "true", DataSource.GLOB_PATHS_KEY -> "false"))
    val relation =
      try source.resolveRelation()
      catch {
        case empty: AnalysisException if TargetLookup.foundNoFiles(empty) && !forgives =>
          throw ZOrderErrors.noFiles(s"'$root'") // an overwrite has just emptied the folder
        case NonFatal(failure) =>
          val actual = DataFormat.ofFolder(fs, root)
          if (actual != known) throw ZOrderErrors.otherFormat(text, actual)
          if (TypeConflicts.mayBe(failure)) {
            TypeConflicts.among(session, known, DataFormat.pathsIn(fs, root)).foreach(conflict =>
              throw ZOrderErrors.because(failure, conflict))
          }
          throw ZOrderErrors.unreadable(text, failure)
      }
    relation match {
      case files: HadoopFsRelation => ResolvedTable(None, root, known, files, Map.empty, None)
      case _ => throw ZOrderErrors.unsupportedProvider(s"'$root'", known)
    }
  }

  /** Resolves a name or a path that is not part of a statement. */
  def ofTarget(target: LogicalPlan): ResolvedTable = target match {
    case PathTarget(path, provider) => ofPath(path, provider.map(_.toLowerCase(Locale.ROOT)))
    case table: UnresolvedTableOrView => ofName(table.multipartIdentifier)
    case other => throw ZOrderErrors.unsupportedProvider(other.toString, other.nodeName)
  }

  private def ofName(parts: Seq[String]): ResolvedTable = {
    val catalog = session.sessionState.catalog
    val identifier = parts match {
      case Seq(table) => TableIdentifier(table)
      case Seq(database, table) => TableIdentifier(table, Some(database))
      case Seq(CatalogAccess.sessionCatalog, database, table) =>
        TableIdentifier(table, Some(database))
      case _ =>
        throw ZOrderErrors.unsupportedProvider(
          parts.mkString("."), "a table in a catalog other than spark_catalog")
    }
    if (catalog.isTempView(identifier)) throw ZOrderErrors.view(identifier.table)
    if (!catalog.tableExists(identifier)) TargetLookup.checkNoPath(parts)
    val entry = catalog.getTableMetadata(identifier)
    if (entry.tableType == CatalogTableType.VIEW) throw ZOrderErrors.view(identifier.table)
    ofCatalog(entry)
  }

  /**
   * The table format whose metadata is in the folder, if any. pyzorder must not modify the files of
   * a Delta, Iceberg or Hudi table.
   */
  def foreignFormat(root: Path): Option[String] = {
    val fs = storeOf(root)
    if (fs.exists(new Path(root, "_delta_log"))) Some("delta")
    else if (fs.exists(new Path(root, ".hoodie"))) Some("hudi")
    else if (fs.exists(new Path(root, "metadata/version-hint.text"))) Some("iceberg")
    else None
  }

  /** Parses a path that was given in a statement. */
  def pathOf(text: String): Path =
    try new Path(text)
    catch { case _: IllegalArgumentException => throw ZOrderErrors.invalidPath(text) }

  /** The path with its file system's scheme and authority. */
  def qualified(path: Path): Path = storeOf(path).makeQualified(path)

  /**
   * The path's file system. Hadoop throws many kinds of exceptions if it does not support a file
   * system or cannot open it.
   */
  private def storeOf(path: Path): FileSystem =
    try path.getFileSystem(hadoopConf)
    catch { case NonFatal(failure) => throw ZOrderErrors.noSuchStore(path.toString, failure) }

  /**
   * Throws ZORDER_PATH_INSIDE_TABLE if the table's folder is a partition folder of another table
   * that has a journal.
   */
  def checkOutermost(table: ResolvedTable): Unit = {
    val outer = TargetLookup.tableFolder(table.root)
    val journal = new TableFolder(outer).journal
    if (outer != table.root && journal.getFileSystem(hadoopConf).exists(journal)) {
      throw ZOrderErrors.pathInsideTable(table.root.toString, outer.toString)
    }
  }

  /** Whether Spark is configured to ignore corrupt files. */
  private def forgives = session.sessionState.conf.ignoreCorruptFiles

  private def hadoopConf = session.sessionState.newHadoopConf()

  private def checkFolder(root: Path): Unit = {
    if (storeOf(root).exists(new TableFolder(root).streamLog)) {
      throw ZOrderErrors.streamingSink(root.toString)
    }
  }

  /**
   * The relation that Spark reads for a catalog table. Spark converts most Hive tables to a
   * HadoopFsRelation.
   */
  private def relationOf(entry: CatalogTable, provider: String): HadoopFsRelation = {
    CacheRelations(session).prepareTarget(entry)
    val parts = Seq(CatalogAccess.sessionCatalog) ++
      entry.identifier.database ++ Seq(entry.identifier.table)
    val plan = shim.dataFrame(session, UnresolvedRelation(parts)).queryExecution.analyzed
    plan.collectLeaves() match {
      case Seq(TargetLookup.Files(files)) => files
      case Seq(hive: HiveTableRelation) => unconverted(hive.tableMeta, provider)
      case _ => throw ZOrderErrors.unsupportedProvider(
          entry.identifier.copy(catalog = None).quotedString, TargetLookup.storedAs(entry))
    }
  }

  /**
   * The relation of a Hive table that Spark does not convert, for example because
   * spark.sql.hive.convertMetastoreParquet is false.
   */
  private def unconverted(entry: CatalogTable, provider: String): HadoopFsRelation = {
    val format: FileFormat =
      if (provider == "parquet") new ParquetFileFormat else new OrcFileFormat
    val formatOptions = entry.properties.filter { case (key, _) =>
      key.startsWith(s"$provider.") || key.contains(s".$provider.")
    }
    HadoopFsRelation(
      new CatalogFileIndex(session, entry, session.sessionState.conf.defaultSizeInBytes),
      entry.partitionSchema,
      entry.dataSchema,
      bucketSpec = None,
      format,
      formatOptions ++ entry.storage.properties)(session)
  }
}

object TargetLookup {

  /** How often a folder that cannot be listed is looked up. */
  private val MaxTries = 5

  /** Throws if the name of a table that does not exist looks like a path. */
  def checkNoPath(parts: Seq[String]): Unit = parts match {
    case Seq(name) if name.contains("/") => throw ZOrderErrors.pathAsName(name)
    case Seq(format, path)
        if path.contains("/") && OtherFormats(format.toLowerCase(Locale.ROOT)) =>
      throw ZOrderErrors.unsupportedProvider(s"'$path'", format)
    case _ => ()
  }

  private val OtherFormats = Set("avro", "csv", "json", "text", "xml")

  /** The table's format according to the catalog, if it is `parquet` or `orc`. */
  def plainProvider(entry: CatalogTable): Option[String] = {
    val provider = entry.provider.getOrElse("hive").toLowerCase(Locale.ROOT)
    val serde = entry.storage.serde.getOrElse("").toLowerCase(Locale.ROOT)
    provider match {
      case "parquet" | "orc" => Some(provider)
      case "hive" if serde.contains("parquet") => Some("parquet")
      case "hive" if serde.contains("orc") => Some("orc")
      case name if name.endsWith("parquet.parquetfileformat") => Some("parquet")
      case name if name.endsWith("orc.orcfileformat") => Some("orc")
      case _ => None
    }
  }

  /** The table's format according to the catalog, if it is `delta`, `iceberg` or `hudi`. */
  def foreignProvider(entry: CatalogTable): Option[String] =
    (entry.provider ++ entry.properties.get("table_type")).map(_.toLowerCase(Locale.ROOT))
      .flatMap(provider => TableFormats.foreignExtensions.keys.find(provider.contains)).headOption

  private def foundNoFiles(failure: AnalysisException): Boolean =
    Option(failure.getErrorClass).contains("UNABLE_TO_INFER_SCHEMA")

  private def storedAs(entry: CatalogTable): String =
    entry.provider.filterNot(_ == "hive").orElse(entry.storage.serde).getOrElse("an unknown format")

  /** The nearest folder, starting with the path itself, that is not named `column=value`. */
  private def tableFolder(path: Path): Path =
    if (path.getName.indexOf('=') > 0 && path.getParent != null) tableFolder(path.getParent)
    else path

  private object Files {
    def unapply(plan: LogicalPlan): Option[HadoopFsRelation] = plan match {
      case relation: LogicalRelation =>
        relation.relation match {
          case files: HadoopFsRelation => Some(files)
          case _ => None
        }
      case _ => None
    }
  }
}
