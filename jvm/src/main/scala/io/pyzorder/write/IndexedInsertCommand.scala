package io.pyzorder.write

import java.io.FileNotFoundException
import java.util.Locale

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.SparkException
import org.apache.spark.sql.{Row, SaveMode}
import org.apache.spark.sql.catalyst.catalog.{BucketSpec, CatalogTable}
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.{BasicWriteJobStatsTracker, FileFormat}
import org.apache.spark.sql.execution.datasources.{FileIndex, InsertIntoHadoopFsRelationCommand}
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.util.SerializableConfiguration

import io.pyzorder.common.{Staleness, ZOrderConf}
import io.pyzorder.index.collect.{ExpressionStatistics, SketchedColumns}
import io.pyzorder.index.model.{Calendars, DataFiles, DeniedColumns, ExpressionColumn, FileEntry}
import io.pyzorder.index.model.{IndexedColumn, IndexedColumns, ReadSettings}
import io.pyzorder.index.sketch.NewSketches
import io.pyzorder.index.store.{Coverage, IndexPublisher, IndexStore, ListedTable, SnapshotRef}
import io.pyzorder.storage.{FileRef, FileSystems, TableFolder}

/**
 * Runs Spark's insert and then adds entries for the new files to the table's index. If there is no
 * index, a clustered write creates one. If the write adds no entries and the table has an index
 * after the write, the command records that the index no longer covers the table. The parameters
 * are exactly those of Spark's insert command, because Spark copies a command by passing the
 * command's parameters to its constructor.
 *
 * The entries are published in a new index snapshot, without the table's lock. If publishing fails,
 * the write still succeeds, because queries always read files that have no entries.
 */
final class IndexedInsertCommand(
    outputPath: Path,
    staticPartitions: TablePartitionSpec,
    ifPartitionNotExists: Boolean,
    partitionColumns: Seq[Attribute],
    bucketSpec: Option[BucketSpec],
    fileFormat: FileFormat,
    options: Map[String, String],
    query: LogicalPlan,
    mode: SaveMode,
    catalogTable: Option[CatalogTable],
    fileIndex: Option[FileIndex],
    outputColumnNames: Seq[String])
    extends InsertIntoHadoopFsRelationCommand(
      outputPath, staticPartitions, ifPartitionNotExists, partitionColumns, bucketSpec, fileFormat,
      options, query, mode, catalogTable, fileIndex, outputColumnNames) {
  import IndexedInsertCommand._

  /**
   * Makes this command unequal to the Spark command that it replaces, whichever of the two is
   * compared with the other. The two commands have the same parameters, so Spark's plan
   * transformations would otherwise keep the original command.
   */
  override def canEqual(other: Any): Boolean = other.isInstanceOf[IndexedInsertCommand]

  override def equals(other: Any): Boolean = canEqual(other) && super.equals(other)

  override def hashCode: Int = super.hashCode

  override protected def withNewChildInternal(
      newChild: LogicalPlan): InsertIntoHadoopFsRelationCommand =
    new IndexedInsertCommand(
      outputPath, staticPartitions, ifPartitionNotExists, partitionColumns, bucketSpec, fileFormat,
      options, newChild, mode, catalogTable, fileIndex, outputColumnNames)

  @transient private var tracker: Option[NewFiles] = None

  override def basicWriteJobStatsTracker(hadoopConf: Configuration): BasicWriteJobStatsTracker =
    tracker.getOrElse(super.basicWriteJobStatsTracker(hadoopConf))

  override def run(session: shim.SparkSession, child: SparkPlan): Seq[Row] = {
    val conf = session.sessionState.newHadoopConfWithOptions(options)
    val folder = new TableFolder(outputPath.getFileSystem(conf).makeQualified(outputPath))
    val before = IndexStore.latest(conf, folder)
    // The folders of tables that may contain this folder as a partition.
    val around = TableFolder.upwards(folder.root).tail.map(new TableFolder(_))
    val columns = indexed(session, before)
    val settings = session.sessionState.conf
    if (columns.nonEmpty) {
      tracker = Some(new NewFiles(
          new SerializableConfiguration(conf), metrics, partitionColumns.length,
          columns.filter(staysTheSame(_, settings)), sketched(session, before), fileSchema, format,
          millis(settings)))
    }
    val result =
      try insert(session, child, Pauses)
      catch {
        // A failed overwrite may have deleted files, and a failed append may have left some behind.
        case NonFatal(failure) if mode == SaveMode.Overwrite || mode == SaveMode.Append =>
          try {
            before.filter(_ => mode == SaveMode.Overwrite)
              .foreach(UnindexedChangeCommand.keep(session, _, properties))
            (folder +: around).foreach(IndexPublisher.uncover(session, _, properties))
          } catch { case NonFatal(second) => failure.addSuppressed(second) }
          throw failure
      }
    try {
      tracker match {
        case Some(written) => publish(session, folder, before, columns, written.files, conf)
        case None => IndexPublisher.uncover(session, folder, properties)
      }
      around.foreach(IndexPublisher.uncover(session, _))
      // Spark has planned cached DataFrames again before the index included the new files.
      session.catalog.refreshByPath(folder.root.toString)
    } catch {
      case NonFatal(failure) =>
        log.warn(
          s"The rows were written to ${folder.root}, but their files are unindexed until " +
            s"REFRESH SKIPPING INDEX: ${failure.getMessage}")
    }
    result
  }

  /**
   * Runs Spark's write. An overwrite first deletes the folder. On a local disk, the deletion fails
   * if a running OPTIMIZE puts a file into the folder at the same time. Nothing has been written by
   * then, so the write is retried.
   */
  private def insert(session: shim.SparkSession, child: SparkPlan, pauses: Seq[Long]): Seq[Row] =
    try super.run(session, child)
    catch {
      case refused: SparkException
          if pauses.nonEmpty && refused.getMessage.contains("Unable to clear ") =>
        Thread.sleep(pauses.head)
        insert(session, child, pauses.tail)
    }

  /**
   * The columns to index. These are the columns of the existing index or, if there is no index, the
   * default columns. Nil if the new files are not to be indexed.
   */
  private def indexed(
      session: shim.SparkSession,
      before: Option[SnapshotRef]): Seq[IndexedColumn] = {
    val wanted = isPlain(fileFormat) && (clustering.nonEmpty ||
      before.isDefined && ZOrderConf.writeIndex.get(session.sessionState.conf, properties))
    val denied = DeniedColumns.of(session.sessionState.conf, properties)
    if (!wanted || ReadSettings.matchesFieldIds(session, fileSchema) ||
      ReadSettings.matchesPositions(session, options)) {
      Nil
    } else {
      before.map(_.columns.filterNot(denied(_))).getOrElse {
        val every = IndexedColumns.default(fileSchema, Int.MaxValue).filterNot(denied(_))
        val limit = ZOrderConf.indexMaxColumns.get(session.sessionState.conf, properties)
        val first = every.take(limit)
        every.filter(column => first.contains(column) || clustering.contains(column)) ++
          clustering.filter(column => ExpressionColumn.matches(column) && !denied(column))
      }
    }
  }

  /** The columns for which sketches are collected, as recorded in the existing index. */
  private def sketched(
      session: shim.SparkSession,
      before: Option[SnapshotRef]): SketchedColumns =
    SketchedColumns.of(
      before.flatMap(_.sketched).getOrElse(Nil), session.sessionState.conf, properties)

  private def publish(
      session: shim.SparkSession,
      folder: TableFolder,
      before: Option[SnapshotRef],
      columns: Seq[IndexedColumn],
      files: Seq[NewFile],
      conf: Configuration): Unit = {
    val settings = ReadSettings.of(session, options, fileSchema).fingerprint
    val wanted = sketched(session, before)
    val listedAt = System.currentTimeMillis()
    val isRemembered = mayRemember(session, before, files.length)
    val folders = foldersOf(session, folder, files, conf, isRemembered)
    val written = folders.flatMap { place =>
      val alone = place.others.isEmpty ||
        clustering.nonEmpty && place.others.forall(withoutRows(folder, before, session))
      place.placed.map { case (file, status) =>
        FileEntry(
          folder.relativize(status.getPath), status.getLen, status.getModificationTime,
          file.numRecords, if (alone) clustering.map(_.label) else Nil, settings, file.statistics,
          NewSketches.of(file.sketches, wanted.budget))
      }
    }
    val entries = ExpressionStatistics.added(
      session,
      DataFiles(
        folder.root, format, fileSchema, new StructType(), options,
        written.map(_.file).toIndexedSeq),
      written, columns, wanted)
    if (entries.nonEmpty || before.isDefined && folders.nonEmpty) {
      val present = folders.flatMap(_.present.values).map(refOf(folder, _)).toSet
      val known = folders.flatMap(_.path).map(folder.relativize).toSet
      val paths = entries.map(_.path).toSet
      // An append does not remove the entries of missing files, because a running OPTIMIZE
      // publishes its entries before it moves its files into place.
      def isGone(entry: FileEntry): Boolean =
        mode == SaveMode.Overwrite && known(entry.file.folder) && !present(entry.file)
      val lacksEntries = entries.length < files.length || overwritesPartly
      val whole = partitionColumns.isEmpty
      lazy val isStream = FileSystems.exists(folder.root.getFileSystem(conf), folder.streamLog)
      val listed = ListedTable(listedAt, before, whole, present.toSeq)
      def coverage(ref: Option[SnapshotRef], all: Seq[FileEntry]): Option[Coverage] = {
        val old = ref.flatMap(_.coverage)
        if (lacksEntries) None
        else if (isRemembered) old
        else if (isStream) None
        else if (all.map(_.file).filter(file => known(file.folder)).toSet != present)
          old.filter(_.isWhole)
        else if (whole && mode == SaveMode.Overwrite) Coverage.of(listed, ref, all)
        else if (whole) old.map(_.copy(listedAt = listedAt))
        else old.orElse(
          if (all.forall(entry => known(entry.file.folder))) Coverage.of(listed, ref, all)
          else None)
      }
      IndexPublisher.publish(
        session, folder,
        old => if (old.isEmpty) columns else old,
        old => old.filterNot(entry => paths(entry.path) || isGone(entry)) ++ entries,
        properties,
        coverage = coverage,
        voids = lacksEntries || mode == SaveMode.Overwrite)
    }
  }

  /**
   * Whether an append need not list the table's folder, because the index covers the folder and the
   * settings allow its age. The coverage then keeps its age. A folder that would take few requests
   * is listed anyway, which renews the coverage. Partitions are always listed: one that was empty
   * until now may hold files that the index does not cover.
   */
  private def mayRemember(
      session: shim.SparkSession,
      before: Option[SnapshotRef],
      numWritten: Int): Boolean = {
    val staleness = Staleness.of(session.sessionState.conf, properties)
    mode == SaveMode.Append && partitionColumns.isEmpty && clustering.isEmpty &&
    before.exists(ref =>
      ref.coverage.exists(known => known.isWhole && staleness.allows(known.listedAt)) &&
        numWritten.toLong * FilesPerStatus < ref.numFiles)
  }

  /**
   * The folders that the write has changed, each with its current files or, if the table's files
   * are remembered, with the files that the write has added.
   */
  private def foldersOf(
      session: shim.SparkSession,
      folder: TableFolder,
      files: Seq[NewFile],
      conf: Configuration,
      isRemembered: Boolean): Seq[WrittenFolder] = {
    val elsewhere = partitionsElsewhere(session)
    val written = files.groupBy(_.folder).toSeq.map { case (place, written) =>
      val path =
        place.fold(values => elsewhere.flatMap(_.of(values)), below => Some(folder.resolve(below)))
      def present(at: Path): Map[String, FileStatus] =
        if (isRemembered) statuses(at, written.map(_.name), conf) else visible(at, conf)
      WrittenFolder(path, path.map(present).getOrElse(Map.empty), written)
    }
    val replaced = overwritten(session).filterNot(path => written.exists(_.path.contains(path)))
    written ++ replaced.map(path => WrittenFolder(Some(path), visible(path, conf), Nil))
  }

  /**
   * The partition that the statement overwrites, even if the statement does not write any rows.
   * None unless the statement names exactly one partition.
   */
  private def overwritten(session: shim.SparkSession): Option[Path] =
    for {
      table <- catalogTable
      if mode == SaveMode.Overwrite && staticPartitions.nonEmpty && !overwritesPartly
      found <- Try(
        session.sessionState.catalog.getPartition(table.identifier, staticPartitions)).toOption
    } yield new Path(found.location)

  /** Whether the statement may overwrite several partitions and leave some of them empty. */
  private def overwritesPartly: Boolean =
    mode == SaveMode.Overwrite && staticPartitions.nonEmpty &&
      staticPartitions.size < partitionColumns.length

  private def refOf(folder: TableFolder, file: FileStatus): FileRef =
    FileRef(folder.relativize(file.getPath), file.getLen, file.getModificationTime)

  /**
   * The locations of the table's partitions. None if the table is not in the catalog. Also None if
   * a task may write several files at once, because the partition of a new file is unknown in that
   * case.
   */
  private def partitionsElsewhere(session: shim.SparkSession): Option[PartitionFolders] =
    catalogTable.filter(_ => session.sessionState.conf.maxConcurrentOutputFileWriters == 0)
      .map(new PartitionFolders(session, _, partitionColumns))

  /**
   * Returns a predicate that is true for a file if a valid index entry says that the file has no
   * rows.
   */
  private def withoutRows(
      folder: TableFolder,
      before: Option[SnapshotRef],
      session: shim.SparkSession): FileStatus => Boolean = {
    val known = before.flatMap(IndexStore.loadAll(session, _)(_.entries)).getOrElse(Nil)
      .filter(_.numRecords == 0).map(entry => entry.path -> entry).toMap
    file =>
      known.get(folder.relativize(file.getPath)).exists(entry =>
        entry.size == file.getLen && entry.modificationTime == file.getModificationTime)
  }

  /** The data files of a folder, keyed by name. Their paths are fully qualified. */
  private def visible(folder: Path, conf: Configuration): Map[String, FileStatus] =
    try {
      folder.getFileSystem(conf).listStatus(folder)
        .filter(status => status.isFile && !TableFolder.isHiddenName(status.getPath.getName))
        .map(status => status.getPath.getName -> status).toMap
    } catch {
      case _: FileNotFoundException => Map.empty // dropped in the meantime
    }

  /** The statuses of the files with these names, like `visible`. */
  private def statuses(
      folder: Path,
      names: Seq[String],
      conf: Configuration): Map[String, FileStatus] = {
    val fs = folder.getFileSystem(conf)
    names.flatMap(name => FileSystems.status(fs, new Path(folder, name)).map(name -> _)).toMap
  }

  private def properties: Map[String, String] =
    catalogTable.map(_.properties).getOrElse(Map.empty)

  private def clustering: Seq[IndexedColumn] =
    query.collectFirst { case rows: ClusteredRows => rows.layout.clusteredBy }.getOrElse(Nil)

  /**
   * The schema of the files. A column's definition comes from the catalog if the catalog declares
   * the column with the same type.
   */
  private def fileSchema: StructType = {
    val known = catalogTable.map(_.schema.fields.toSeq).getOrElse(Nil)
    val inFolders = AttributeSet(partitionColumns)
    StructType(outputColumns.filterNot(inFolders.contains).map { c =>
      known.find(_.name == c.name).filter(_.dataType == c.dataType)
        .getOrElse(StructField(c.name, c.dataType, c.nullable, c.metadata))
    })
  }

  /** Whether a column's values are read back exactly as they are written. */
  private def staysTheSame(column: IndexedColumn, conf: SQLConf): Boolean = {
    val modes = Seq(
      conf.getConf(SQLConf.PARQUET_REBASE_MODE_IN_WRITE),
      conf.getConf(SQLConf.PARQUET_INT96_REBASE_MODE_IN_WRITE))
    val oldCalendar = format == "parquet" && Calendars.isTemporal(column.dataType) &&
      modes.exists(_.toString == "LEGACY")
    !oldCalendar && IndexedColumns.fieldsOf(fileSchema, column.path, _ == _)
      .exists(_.last.dataType == column.dataType)
  }

  private def format: String = fileFormat.toString.toLowerCase(Locale.ROOT)

  private def millis(conf: SQLConf): Boolean =
    conf.parquetOutputTimestampType.toString == "TIMESTAMP_MILLIS"
}

object IndexedInsertCommand {

  /** Milliseconds to wait before each further attempt to clear the folder. */
  private val Pauses: Seq[Long] = Seq(50, 100, 200, 400, 800, 1600)

  /**
   * The number of files that a store lists in about the time that it takes to return one file's
   * status.
   */
  private val FilesPerStatus = 300

  /**
   * Whether files in this format are indexed. The format's class must be Spark's class itself, not
   * a subclass.
   */
  private[write] def isPlain(format: FileFormat): Boolean =
    format.getClass == classOf[ParquetFileFormat] || format.getClass == classOf[OrcFileFormat]
}
