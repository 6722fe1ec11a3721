package io.pyzorder.index.store

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.util.Try
import scala.util.control.NonFatal

import com.google.common.cache.{Cache, CacheBuilder}
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

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.model.{DeniedColumns, FileEntry, IndexSchema, IndexedColumn}
import io.pyzorder.storage.{CreateIfAbsent, ExactFileIndex, FileSystems, Incarnation, Links}
import io.pyzorder.storage.{MetadataFiles, RunNumber, TableFolder}

/**
 * The index table of a table: immutable snapshots under `_zorder/_index`, each a data file and a
 * pointer that is created last and only if nobody else created it. The greatest pointer counts.
 */
object IndexStore {

  private val log = LoggerFactory.getLogger(getClass)

  /** Older snapshots than this many are deleted when a new one is published. */
  private val KeptSnapshots = 10

  /** What is kept of each entry beside its columns, about. */
  private val EntryBytes = 64L

  /** The life that a table had when it was last asked for. */
  private val lives: Cache[TableFolder, String] =
    CacheBuilder.newBuilder().maximumSize(10000).build[TableFolder, String]()

  /** The data files of large indexes that had the checksum of their pointer, by pointer. */
  private val intact: Cache[SnapshotRef, java.lang.Boolean] =
    CacheBuilder.newBuilder().maximumSize(1000).build[SnapshotRef, java.lang.Boolean]()

  private val warned = ConcurrentHashMap.newKeySet[String]()

  /**
   * The newest snapshot's pointer, with one listing and one small read; None: there is no index, or
   * its pointer cannot be read, or is of another table or life of the table (one warning).
   */
  def latest(hadoopConf: Configuration, folder: TableFolder): Option[SnapshotRef] = {
    val fileSystem = folder.index.getFileSystem(hadoopConf)
    try {
      versions(fileSystem, folder).lastOption.map { version =>
        val ref = pointerAt(fileSystem, folder, version)
        if (!ofThisLife(hadoopConf, ref)) {
          throw new IllegalStateException(
            "it is of another table, or of the time before this one was overwritten")
        }
        ref
      }
    } catch {
      case NonFatal(failure) =>
        warn(folder, folder.index.toString, failure)
        None
    }
  }

  /**
   * The columns of the newest pointer that can be read, be the index itself of use or not: what
   * building it anew starts from. Nil: no pointer can be read; None: there is no index.
   */
  def lastColumns(hadoopConf: Configuration, folder: TableFolder): Option[Seq[IndexedColumn]] = {
    val fileSystem = folder.index.getFileSystem(hadoopConf)
    val known = versions(fileSystem, folder)
    if (known.isEmpty) None
    else Some(known.reverseIterator.flatMap { version =>
      Try(pointerAt(fileSystem, folder, version)).toOption
    }.map(_.columns).toSeq.headOption.getOrElse(Nil))
  }

  /**
   * An index that was copied in from elsewhere could have entries that fit files here by accident.
   * What is known of the table's life is asked for again only where it does not fit: the file that
   * tells it is never changed, and an overwrite that takes it away takes the index with it.
   */
  private def ofThisLife(hadoopConf: Configuration, ref: SnapshotRef): Boolean =
    lives.getIfPresent(ref.folder) == ref.incarnation ||
      Incarnation.read(hadoopConf, ref.folder).exists { now =>
        lives.put(ref.folder, now)
        now == ref.incarnation
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
   * @param properties the table's, which may deny columns; empty for a path
   * @param change  from the entries to those that shall be kept; statistics of columns that are not
   *                kept, or not with the same type, are gone from what it is given
   * @param life    of the table, as a writer saw it; None: as it is now, or begun by this
   * @return the pointer of the new snapshot
   */
  def publish(
      session: shim.SparkSession,
      folder: TableFolder,
      columns: Seq[IndexedColumn] => Seq[IndexedColumn],
      change: Seq[FileEntry] => Seq[FileEntry],
      properties: Map[String, String] = Map.empty,
      life: Option[String] = None): SnapshotRef = {
    val denied = DeniedColumns.of(session.sessionState.conf, properties)
    val hadoopConf = session.sessionState.newHadoopConf()
    val fileSystem = folder.index.getFileSystem(hadoopConf)
    CreateIfAbsent.of(hadoopConf, folder.index) // an error, before anything is made
    MetadataFiles.makeFolder(hadoopConf, folder.index)
    var published: Option[SnapshotRef] = None
    while (published.isEmpty) {
      published = tryPublish(
        session, fileSystem, folder, columns(_).filterNot(denied(_)), change, life)
    }
    deleteOld(fileSystem, folder, denied)
    published.get
  }

  /** Removes the index; the table is read whole from now on. */
  def drop(session: shim.SparkSession, folder: TableFolder): Unit =
    MetadataFiles.delete(session.sessionState.newHadoopConf(), folder.index)

  /**
   * Takes away the snapshots that were replaced by a time, in milliseconds of the store's clock:
   * they still tell minima and maxima of rows that are gone.
   */
  def deleteReplaced(hadoopConf: Configuration, folder: TableFolder, by: Long): Unit = {
    val fileSystem = folder.index.getFileSystem(hadoopConf)
    val known = versions(fileSystem, folder)
    known.zip(known.drop(1)).foreach { case (version, next) =>
      val pointer = new Path(folder.index, SnapshotRef.pointerName(next))
      val replaced =
        try Some(fileSystem.getFileStatus(pointer).getModificationTime)
        catch { case _: FileNotFoundException => None } // by another's turn
      if (replaced.exists(_ <= by)) delete(fileSystem, folder, version)
    }
  }

  /** Removes the snapshots of a life of the table that is over. */
  def removeOf(hadoopConf: Configuration, folder: TableFolder, incarnation: String): Unit = {
    val fileSystem = folder.index.getFileSystem(hadoopConf)
    versions(fileSystem, folder).foreach { version =>
      Try(pointerAt(fileSystem, folder, version)).filter(_.incarnation == incarnation)
        .foreach { ref =>
          fileSystem.delete(new Path(folder.index, ref.pointer), false)
          fileSystem.delete(dataFile(ref), false)
        }
    }
  }

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
      change: Seq[FileEntry] => Seq[FileEntry],
      life: Option[String]): Option[SnapshotRef] = {
    val conf = session.sessionState.newHadoopConf()
    val base = versions(fileSystem, folder).lastOption.getOrElse(0L)
    if (base + 1 >= RunNumber.Greatest) throw ZOrderErrors.usedUpNumbers(folder.index.toString)
    val snapshot = latest(conf, folder).filter(_.version == base).flatMap(load(session, _))
      .getOrElse(IndexSnapshot.empty)
    val kept = columns(snapshot.columns)
    val entries = change(withColumns(snapshot, kept)).sortBy(_.path)
    val bytes = SnapshotWriter.bytesOf(session, kept, entries)
    val version = base + 1
    val ref = SnapshotRef(
      folder,
      version,
      life.getOrElse(Incarnation.readOrCreate(conf, folder)),
      s"_snapshot-$version-${UUID.randomUUID()}",
      bytes.length.toLong,
      SnapshotFiles.checksum(bytes),
      entries.length,
      kept)
    val data = new Path(folder.index, ref.file)
    SnapshotFiles.write(fileSystem, data, bytes)
    MetadataFiles.share(conf, data)
    val pointer = new Path(folder.index, ref.pointer)
    val created =
      try CreateIfAbsent.of(conf, pointer).create(pointer, ref.toJson.getBytes(UTF_8))
      catch {
        case NonFatal(failure) =>
          // Not where the pointer arrived all the same, or may have.
          if (Try(!fileSystem.exists(pointer)).getOrElse(false)) fileSystem.delete(data, false)
          throw failure
      }
    if (created) {
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
    checkEntries(ref)
    checkMemory(ref)
    val path = dataFile(ref)
    val fileSystem = path.getFileSystem(session.sessionState.newHadoopConf())
    val bytes = new SnapshotBytes(() => {
      val bytes = SnapshotFiles.readBytes(fileSystem, path, ref.length)
      if (SnapshotFiles.checksum(bytes) != ref.checksum) throw damaged
      bytes
    })
    val reader = new SnapshotReader(
      () => new MemoryInputFile(bytes.get), ref.numFiles, ignored = warnOfStray(ref, _))
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

  /**
   * Before memory is taken for entries: Parquet writes a value that is the same in all rows once,
   * so that a small forged file could have thousands of millions. No two of ours have one path.
   */
  private def checkEntries(ref: SnapshotRef): Unit =
    if (ref.numFiles < 0 || ref.numFiles > ref.length) {
      throw new IllegalStateException(
        s"${ref.numFiles} entries cannot be told apart in ${ref.length} bytes")
    }

  /** Also a file with holes in it, which takes no room on a disk, takes its length here. */
  private def checkMemory(ref: SnapshotRef): Unit = {
    val needed = ref.length + ref.numFiles * EntryBytes
    val most = Runtime.getRuntime.maxMemory / 2
    if (needed > most) {
      throw new IllegalStateException(
        s"it takes $needed bytes of memory, and more than $most are not spent on it. Give the " +
          "driver more memory")
    }
  }

  private def damaged: Exception =
    new IllegalStateException("its bytes do not have the checksum of its pointer")

  /**
   * Throws unless the snapshot's file has the checksum of its pointer. Parquet's own checksums
   * cover values only, not the places and encodings that tell where and how they stand. The file
   * is read once a process, and not kept.
   */
  def checkIntact(hadoopConf: Configuration, ref: SnapshotRef): Unit = {
    checkEntries(ref)
    if (intact.getIfPresent(ref) == null) {
      val path = dataFile(ref)
      if (SnapshotFiles.checksum(path.getFileSystem(hadoopConf), path) != ref.checksum) {
        throw damaged
      }
      intact.put(ref, java.lang.Boolean.TRUE)
    }
  }

  /** How many entries each row group of the snapshot's file holds. */
  def rowGroups(hadoopConf: Configuration, ref: SnapshotRef): Seq[Int] = {
    val groups = SnapshotReader.rowGroups(HadoopInputFile.fromPath(dataFile(ref), hadoopConf))
    if (groups.map(_.toLong).sum != ref.numFiles) throw damaged
    groups
  }

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

  private def pointerAt(
      fileSystem: FileSystem,
      folder: TableFolder,
      version: Long): SnapshotRef = {
    val pointer = new Path(folder.index, SnapshotRef.pointerName(version))
    val ref = SnapshotRef.fromJson(folder, SnapshotFiles.readText(fileSystem, pointer))
    Seq(pointer, dataFile(ref))
      .find(path => Links.inOwn(path) || FileSystems.isSpecial(path))
      .foreach(path => throw new IllegalStateException(s"$path is a symbolic link, or no file"))
    ref
  }

  /** The versions that pointers exist of, in order. */
  private def versions(fileSystem: FileSystem, folder: TableFolder): Array[Long] =
    FileSystems.list(fileSystem, folder.index)
      .flatMap(status => SnapshotRef.versionOf(status.getPath.getName)).sorted.toArray

  /**
   * Takes away old snapshots, pointer last: for a while nobody asks for them any more, but those
   * that hold something of a denied column at once.
   */
  private def deleteOld(
      fileSystem: FileSystem,
      folder: TableFolder,
      denied: DeniedColumns): Unit =
    try {
      val before = versions(fileSystem, folder).dropRight(1)
      val (old, recent) = before.splitAt(before.length - KeptSnapshots + 1)
      val telling =
        if (denied.isEmpty) Array.empty[Long]
        else recent.filter(version =>
          Try(pointerAt(fileSystem, folder, version)).toOption
            .forall(_.columns.exists(denied(_))))
      (old ++ telling).foreach(delete(fileSystem, folder, _))
    } catch {
      case NonFatal(failure) =>
        log.info(s"Old index snapshots of $folder stay: ${failure.getMessage}")
    }

  private def delete(fileSystem: FileSystem, folder: TableFolder, version: Long): Unit = {
    FileSystems.list(fileSystem, folder.index).map(_.getPath)
      .filter(_.getName.startsWith(s"_snapshot-$version-"))
      .foreach(fileSystem.delete(_, false))
    fileSystem.delete(new Path(folder.index, SnapshotRef.pointerName(version)), false)
  }

  private def warnOfStray(ref: SnapshotRef, path: String): Unit =
    if (warned.add(s"${ref.folder} $path")) {
      log.warn(s"The skipping index of ${ref.folder} has an entry of $path, which is no file of " +
        s"the table, and ignores it. Run REFRESH SKIPPING INDEX ON '${ref.folder}' to take it out.")
    }

  private def warn(folder: TableFolder, what: String, failure: Throwable): Unit =
    if (warned.add(what + failure.getMessage)) {
      log.warn(ZOrderErrors.withoutPassword(
          s"The skipping index of $folder cannot be used, and all files are read: $what: " +
            s"${failure.getMessage}. Run REFRESH SKIPPING INDEX ON '$folder' (or DROP SKIPPING " +
            "INDEX, then CREATE SKIPPING INDEX) to build it anew."))
    }
}
