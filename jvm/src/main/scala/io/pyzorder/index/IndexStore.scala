package io.pyzorder.index

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType
import org.slf4j.LoggerFactory

import io.pyzorder.publish.{CreateIfAbsent, Incarnation, TableFolder}

/**
 * The index table of a table: immutable snapshots under `_zorder/_index`, each a data file and a
 * pointer that is created last and only if nobody else created it. The greatest pointer counts.
 */
object IndexStore {

  private val log = LoggerFactory.getLogger(getClass)

  /** Older snapshots than this many are deleted when a new one is published. */
  private val KeptSnapshots = 10

  private val warned = ConcurrentHashMap.newKeySet[String]()

  /**
   * The newest snapshot's pointer, with one listing and one small read; None: there is no index, or
   * its pointer cannot be read (one warning).
   */
  def latest(hadoopConf: Configuration, folder: TableFolder): Option[SnapshotRef] = {
    val fileSystem = folder.index.getFileSystem(hadoopConf)
    try {
      versions(fileSystem, folder).lastOption.map { version =>
        val pointer = new Path(folder.index, SnapshotRef.pointerName(version))
        SnapshotRef.fromJson(folder, SnapshotFiles.readText(fileSystem, pointer))
      }
    } catch {
      case NonFatal(failure) =>
        warn(folder, folder.index.toString, failure)
        None
    }
  }

  /** The snapshot a pointer names; None: it is missing, damaged or unreadable (one warning). */
  def load(session: shim.SparkSession, ref: SnapshotRef): Option[IndexSnapshot] =
    SnapshotCache.get(session, ref) {
      try Some(read(session, ref))
      catch {
        case NonFatal(failure) =>
          warn(ref, failure)
          None
      }
    }

  /**
   * Publishes a new snapshot: the latest one's entries after `change`. Whoever publishes at the
   * same time makes this load the newer snapshot and change that one, so that `columns` and
   * `change` may be called several times. An unreadable index counts as one without entries.
   *
   * @param columns from the columns that had statistics to those that shall have them
   * @param change  from the entries to those that shall be kept; statistics of columns that are not
   *                kept, or not with the same type, are gone from what it is given
   * @return the pointer of the new snapshot
   */
  def publish(
      session: shim.SparkSession,
      folder: TableFolder,
      columns: Seq[IndexedColumn] => Seq[IndexedColumn],
      change: Seq[FileEntry] => Seq[FileEntry]): SnapshotRef = {
    val fileSystem = folder.index.getFileSystem(session.sessionState.newHadoopConf())
    fileSystem.mkdirs(folder.index)
    var published: Option[SnapshotRef] = None
    while (published.isEmpty) {
      published = tryPublish(session, fileSystem, folder, columns, change)
    }
    deleteOld(fileSystem, folder)
    published.get
  }

  /** Removes the index; the table is read whole from now on. */
  def drop(session: shim.SparkSession, folder: TableFolder): Unit =
    folder.index.getFileSystem(session.sessionState.newHadoopConf()).delete(folder.index, true)

  /** The index table as a relation over exactly the snapshot's data file. */
  def relation(session: shim.SparkSession, ref: SnapshotRef): LogicalPlan = {
    val path = dataFile(ref)
    val files = Seq(ExactFileIndex.status(path, ref.length, 0L))
    val location =
      new ExactFileIndex(path, new StructType(), Seq((InternalRow.empty, files)))
    val schema = IndexSchema.of(ref.columns)
    LogicalRelation(HadoopFsRelation(
        location, new StructType(), schema, None, new ParquetFileFormat, Map.empty)(session))
  }

  private def tryPublish(
      session: shim.SparkSession,
      fileSystem: FileSystem,
      folder: TableFolder,
      columns: Seq[IndexedColumn] => Seq[IndexedColumn],
      change: Seq[FileEntry] => Seq[FileEntry]): Option[SnapshotRef] = {
    val conf = session.sessionState.newHadoopConf()
    val base = versions(fileSystem, folder).lastOption.getOrElse(0L)
    val snapshot = latest(conf, folder).filter(_.version == base).flatMap(load(session, _))
      .getOrElse(IndexSnapshot.empty)
    val kept = columns(snapshot.columns)
    val entries = change(withColumns(snapshot, kept)).sortBy(_.path)
    val bytes = SnapshotWriter.bytesOf(session, kept, entries)
    val version = base + 1
    val ref = SnapshotRef(
      folder,
      version,
      Incarnation.readOrCreate(conf, folder),
      s"_snapshot-$version-${UUID.randomUUID()}",
      bytes.length.toLong,
      SnapshotFiles.checksum(bytes),
      entries.length,
      kept)
    val data = new Path(folder.index, ref.file)
    SnapshotFiles.write(fileSystem, data, bytes)
    val pointer = new Path(folder.index, ref.pointer)
    if (CreateIfAbsent.of(conf, pointer).create(pointer, ref.toJson.getBytes(UTF_8))) {
      Some(ref)
    } else {
      fileSystem.delete(data, false)
      None
    }
  }

  /** The entries with only the statistics that are still of use. */
  private def withColumns(snapshot: IndexSnapshot, kept: Seq[IndexedColumn]): Seq[FileEntry] = {
    val names = kept.filter(snapshot.columns.contains).map(_.name).toSet
    snapshot.entries.map(entry =>
      entry.copy(statistics = entry.statistics.filter { case (name, _) => names(name) }))
  }

  /** The snapshot, not from the cache; throws when it is missing or damaged. */
  private[pyzorder] def read(session: shim.SparkSession, ref: SnapshotRef): IndexSnapshot = {
    val path = dataFile(ref)
    val fileSystem = path.getFileSystem(session.sessionState.newHadoopConf())
    val bytes = new SnapshotBytes(() => {
      val bytes = SnapshotFiles.readBytes(fileSystem, path, ref.length)
      if (SnapshotFiles.checksum(bytes) != ref.checksum) {
        throw new IllegalStateException("its bytes do not have the checksum of its pointer")
      }
      bytes
    })
    val reader = new SnapshotReader(() => new MemoryInputFile(bytes.get), ref.numFiles)
    new IndexSnapshot(ref.columns, reader.files(),
      column => {
        try Some(reader.column(column))
        catch {
          case NonFatal(failure) =>
            warn(ref.folder, s"$path, column ${column.name}", failure)
            None
        }
      },
      () => reader.paths(),
      grown = () => SnapshotCache.grown(ref))
  }

  /** How many entries each row group of the snapshot's file holds. */
  def rowGroups(hadoopConf: Configuration, ref: SnapshotRef): Seq[Int] =
    SnapshotReader.rowGroups(HadoopInputFile.fromPath(dataFile(ref), hadoopConf))

  /** The entries of one row group of a snapshot's file, `numFiles` of them; for tasks. */
  def readPart(
      hadoopConf: Configuration,
      dataFile: Path,
      columns: Seq[IndexedColumn],
      rowGroup: Int,
      numFiles: Int): IndexSnapshot = {
    val file = HadoopInputFile.fromPath(dataFile, hadoopConf)
    val reader = new SnapshotReader(() => file, numFiles, Some(rowGroup))
    new IndexSnapshot(
      columns, reader.files(), column => Some(reader.column(column)), () => reader.paths())
  }

  /** One warning that a snapshot cannot be used. */
  def warn(ref: SnapshotRef, failure: Throwable): Unit =
    warn(ref.folder, dataFile(ref).toString, failure)

  /** The Parquet file of a snapshot. */
  def dataFile(ref: SnapshotRef): Path = new Path(ref.folder.index, ref.file)

  /** The versions that pointers exist of, in order. */
  private def versions(fileSystem: FileSystem, folder: TableFolder): Array[Long] =
    try {
      fileSystem.listStatus(folder.index)
        .flatMap(status => SnapshotRef.versionOf(status.getPath.getName))
        .sorted
    } catch {
      case _: FileNotFoundException => Array.empty
    }

  /**
   * Takes away pointers, then the data files that no pointer left names and no writer may await.
   */
  private def deleteOld(fileSystem: FileSystem, folder: TableFolder): Unit =
    try {
      versions(fileSystem, folder).dropRight(KeptSnapshots).foreach { version =>
        fileSystem.listStatus(folder.index).map(_.getPath)
          .filter(_.getName.startsWith(s"_snapshot-$version-"))
          .foreach(fileSystem.delete(_, false))
        fileSystem.delete(new Path(folder.index, SnapshotRef.pointerName(version)), false)
      }
    } catch {
      case NonFatal(failure) =>
        log.info(s"Old index snapshots of ${folder.root} stay: ${failure.getMessage}")
    }

  private def warn(folder: TableFolder, what: String, failure: Throwable): Unit =
    if (warned.add(what + failure.getMessage)) {
      log.warn(s"The skipping index of ${folder.root} cannot be used, and all files are read: " +
        s"$what: ${failure.getMessage}. Run REFRESH SKIPPING INDEX ON '${folder.root}' (or DROP " +
        "SKIPPING INDEX, then CREATE SKIPPING INDEX) to build it anew.")
    }
}
