package io.pyzorder.index.store

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.util.Try
import scala.util.control.NonFatal

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{ArrayType, StructField, StructType}
import org.slf4j.LoggerFactory

import io.pyzorder.common.{Printable, ReadFailure, ZOrderErrors, ZOrderException}
import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.model.{DeniedColumns, FileEntry, IndexSchema, IndexedColumn}
import io.pyzorder.storage.{CreateIfAbsent, ExactFileIndex, FileSystems, Incarnation, Links}
import io.pyzorder.storage.{ListedMetadata, MetadataFiles, RunNumber, TableFolder}

/**
 * A table's index: immutable snapshots under `_zorder/_index`, each consisting of a data file and a
 * pointer. The pointer is written last, and only if no other writer has created a pointer with the
 * same version. The pointer with the highest version is current.
 */
object IndexStore {

  private val log = LoggerFactory.getLogger(getClass)

  /** The incarnation that was last read for each table. */
  private val incarnations: Cache[TableFolder, String] =
    CacheBuilder.newBuilder().maximumSize(10000).build[TableFolder, String]()

  /**
   * Parsed pointers, keyed by folder, version, size and modification time. A pointer file is never
   * changed, so its contents are the same as long as listings show the same size and modification
   * time. A pointer is cached only if it was older than `SettledMillis` when it was read.
   * Otherwise, if the index is dropped and created again within one tick of the store's clock, the
   * new pointer could have the same version, size and time as the cached one.
   */
  private val parsed: Cache[(TableFolder, Long, Long, Long), SnapshotRef] =
    CacheBuilder.newBuilder().maximumSize(1000)
      .build[(TableFolder, Long, Long, Long), SnapshotRef]()

  private val SettledMillis = 10000L

  /**
   * The maximum length of a failure's message in the log. A message may quote large parts of the
   * index.
   */
  private val MessageLength = 300

  private val warned = ConcurrentHashMap.newKeySet[String]()

  /**
   * The newest snapshot's pointer, found with one listing and at most two small reads. Returns None
   * if there is no index. If the pointer is unreadable, or if it belongs to another table or to an
   * earlier incarnation of this table, also returns None and logs a warning once.
   */
  def latest(hadoopConf: Configuration, folder: TableFolder): Option[SnapshotRef] =
    latest(hadoopConf, ListedMetadata.of(hadoopConf, folder))

  /** Like `latest`, but uses an existing listing. */
  def latest(hadoopConf: Configuration, listed: ListedMetadata): Option[SnapshotRef] = {
    val folder = listed.folder
    val fileSystem = folder.index.getFileSystem(hadoopConf)
    try {
      pointers(listed.index).lastOption.map { case (version, status) =>
        val ref = known(fileSystem, folder, version, status)
        if (!isCurrent(hadoopConf, ref)) {
          throw new IllegalStateException(
            "it belongs to another table, or to this table before it was overwritten")
        }
        ref
      }
    } catch {
      case ReadFailure(failure) =>
        warn(folder, folder.index.toString, failure)
        None
    }
  }

  /**
   * The columns to use when an index is rebuilt. They are taken from the newest readable pointer,
   * even if the index itself is unusable. Returns Nil if no pointer is readable, and None if there
   * is no index.
   */
  def lastColumns(hadoopConf: Configuration, folder: TableFolder): Option[Seq[IndexedColumn]] = {
    val fileSystem = folder.index.getFileSystem(hadoopConf)
    val known = versions(fileSystem, folder)
    if (known.isEmpty) None
    else Some(known.reverseIterator.flatMap(readable(fileSystem, folder, _))
        .map(_.columns).toSeq.headOption.getOrElse(Nil))
  }

  /**
   * Whether the pointer belongs to the table's current incarnation. The entries of an index that
   * was copied from another folder could happen to match files in this table. The incarnation is
   * read again only if the cached one does not match the pointer's. This is sufficient because the
   * file that contains the incarnation never changes, and an overwrite that removes this file also
   * removes the index.
   */
  private def isCurrent(hadoopConf: Configuration, ref: SnapshotRef): Boolean =
    incarnations.getIfPresent(ref.folder) == ref.incarnation ||
      Incarnation.read(hadoopConf, ref.folder).exists { now =>
        incarnations.put(ref.folder, now)
        now == ref.incarnation
      }

  /**
   * Loads the snapshot that a pointer refers to. If the snapshot is missing, damaged or unreadable,
   * returns None and logs a warning once.
   */
  def load(session: shim.SparkSession, ref: SnapshotRef): Option[IndexSnapshot] =
    SnapshotCache.get(session, ref) {
      try Some(read(session, ref))
      catch {
        case ReadFailure(failure) =>
          warn(ref, failure)
          None
      }
    }

  /**
   * Loads a snapshot like `load`, and applies `use`, which may read all of it. The bytes of a
   * loaded snapshot may have been freed, and its file may be gone or damaged by now. If so, this
   * method returns None, as `load` does in a process that has not loaded the snapshot.
   *
   * @throws io.pyzorder.common.ZOrderException if `use` does
   */
  def loadAll[T](session: shim.SparkSession, ref: SnapshotRef)(
      use: IndexSnapshot => T): Option[T] =
    load(session, ref).flatMap { snapshot =>
      try Some(use(snapshot))
      catch {
        case failure: ZOrderException => throw failure
        case ReadFailure(failure) =>
          SnapshotCache.remove(ref)
          warn(ref, failure)
          None
      }
    }

  /**
   * Applies `change` to the entries of the latest snapshot and publishes the result as a new
   * snapshot. If another writer publishes a snapshot in the meantime, this method loads that
   * snapshot and starts again, so it may call `columns` and `change` several times. An unreadable
   * index is treated as an index without entries.
   *
   * @param columns     maps the columns that had statistics to the columns that will have
   *                    statistics
   * @param change      maps the old entries to the new ones. Its input no longer contains
   *                    statistics of columns that are dropped or whose type changes
   * @param properties  the table's properties, which may deny columns; empty for a table that is
   *                    identified by its path
   * @param incarnation the table's incarnation as seen by a writer; if None, the current
   *                    incarnation is used, or a new one if the table has none
   * @param coverage    computes the new coverage from the latest snapshot and the new entries
   * @param sketched    maps the old value of SnapshotRef.sketched to the new one
   * @param voids       whether this writer added files without adding entries, or deleted or moved
   *                    files. If so, a listing that another writer began earlier no longer covers
   *                    the table
   * @return the pointer to the new snapshot
   */
  def publish(
      session: shim.SparkSession,
      folder: TableFolder,
      columns: Seq[IndexedColumn] => Seq[IndexedColumn],
      change: Seq[FileEntry] => Seq[FileEntry],
      properties: Map[String, String] = Map.empty,
      incarnation: Option[String] = None,
      coverage: (Option[SnapshotRef], Seq[FileEntry]) => Option[Coverage] = (_, _) => None,
      voids: Boolean = false,
      sketched: Option[Seq[String]] => Option[Seq[String]] = identity): SnapshotRef = {
    val denied = DeniedColumns.of(session.sessionState.conf, properties)
    val hadoopConf = session.sessionState.newHadoopConf()
    val fileSystem = folder.index.getFileSystem(hadoopConf)
    CreateIfAbsent.of(hadoopConf, folder.index) // may throw, so this comes before any write
    MetadataFiles.makeFolder(hadoopConf, folder.index)
    var published: Option[SnapshotRef] = None
    while (published.isEmpty) {
      published = tryPublish(
        session, fileSystem, folder, columns(_).filterNot(denied(_)), change, incarnation, coverage,
        voids, sketched)
    }
    new OldSnapshots(fileSystem, folder).deleteOld(denied)
    published.get
  }

  /**
   * Records that a writer has changed files without adding entries. An existing index then does not
   * cover any folder until the table has been listed again.
   *
   * @param properties see `publish`
   */
  def uncover(
      session: shim.SparkSession,
      folder: TableFolder,
      properties: Map[String, String] = Map.empty): Unit =
    if (latest(session.sessionState.newHadoopConf(), folder).isDefined) {
      publish(session, folder, identity, identity, properties, voids = true)
    }

  /** Removes the index. From then on, queries read all of the table's files. */
  def drop(session: shim.SparkSession, folder: TableFolder): Unit =
    MetadataFiles.delete(session.sessionState.newHadoopConf(), folder.index)

  /** See OldSnapshots.deleteReplaced. */
  def deleteReplaced(hadoopConf: Configuration, folder: TableFolder, by: Long): Unit =
    new OldSnapshots(folder.index.getFileSystem(hadoopConf), folder).deleteReplaced(by)

  /** Removes the snapshots of a former incarnation of the table. */
  def removeOf(hadoopConf: Configuration, folder: TableFolder, incarnation: String): Unit =
    new OldSnapshots(folder.index.getFileSystem(hadoopConf), folder).removeOf(incarnation)

  /**
   * The index table as a relation over the snapshot's data file. Every column is nullable, because
   * Spark fails if a forged file lacks a value in another column.
   */
  def relation(session: shim.SparkSession, ref: SnapshotRef): LogicalPlan = {
    val (path, schema) = (ref.dataFile, IndexSchema.of(ref.columns))
    val hadoopConf = session.sessionState.newHadoopConf()
    try {
      SnapshotChecks.intact(hadoopConf, ref)
      SnapshotChecks.readable(HadoopInputFile.fromPath(path, hadoopConf), schema)
    } catch {
      case ReadFailure(failure) =>
        warn(ref, failure)
        throw ZOrderErrors.indexNotFound(ref.folder.toString)
    }
    val files = Seq(ExactFileIndex.status(path, ref.length, 0L))
    val location =
      new ExactFileIndex(path, new StructType(), Seq((InternalRow.empty, files)))
    LogicalRelation(HadoopFsRelation(
        location, new StructType(), StructType(schema.map(nullable)), None,
        new ParquetFileFormat, Map.empty)(session))
  }

  private def nullable(field: StructField): StructField = field.copy(
    nullable = true,
    dataType = field.dataType match {
      case ArrayType(elements, _) => ArrayType(elements, containsNull = true)
      case other => other
    })

  private def tryPublish(
      session: shim.SparkSession,
      fileSystem: FileSystem,
      folder: TableFolder,
      columns: Seq[IndexedColumn] => Seq[IndexedColumn],
      change: Seq[FileEntry] => Seq[FileEntry],
      incarnation: Option[String],
      coverage: (Option[SnapshotRef], Seq[FileEntry]) => Option[Coverage],
      voids: Boolean,
      sketched: Option[Seq[String]] => Option[Seq[String]]): Option[SnapshotRef] = {
    val conf = session.sessionState.newHadoopConf()
    val base = versions(fileSystem, folder).lastOption.getOrElse(0L)
    if (base + 1 >= RunNumber.Greatest) throw ZOrderErrors.usedUpNumbers(folder.index.toString)
    val before = latest(conf, folder).filter(_.version == base)
    val loaded = before.flatMap(ref => loadAll(session, ref)(_.entries).map(ref -> _))
    val isUnknown = base > 0 && loaded.isEmpty // the index exists but cannot be read
    val (known, old) = loaded.fold((Seq.empty[IndexedColumn], Seq.empty[FileEntry])) {
      case (ref, entries) => (ref.columns, entries)
    }
    val kept = columns(known)
    val changed = change(withColumns(old, known.filter(kept.contains))).sortBy(_.path)
    val version = base + 1
    val segments = new SketchSegments(
      conf, folder, loaded.fold(Seq.empty[SegmentRef])(_._1.sketches), kept,
      warnOfSketches(folder, _, _))
    val (entries, sketches) = segments.store(version, changed)
    val bytes = SnapshotWriter.bytesOf(session, kept, entries)
    val ref = SnapshotRef(
      folder,
      version,
      incarnation.getOrElse(Incarnation.readOrCreate(conf, folder)),
      s"_snapshot-$version-${UUID.randomUUID()}",
      bytes.length.toLong,
      SnapshotFiles.checksum(bytes),
      entries.length,
      kept,
      if (isUnknown) None else coverage(before, entries),
      if (voids || isUnknown) version else before.fold(0L)(_.coverableSince),
      sketches,
      sketched(before.flatMap(_.sketched).orElse(SketchSegments.columnsIn(changed)))
        .map(kept.map(_.name).intersect(_)))
    val data = new Path(folder.index, ref.file)
    SnapshotFiles.write(fileSystem, data, bytes)
    MetadataFiles.share(conf, data)
    val pointer = new Path(folder.index, ref.pointer)
    val created =
      try CreateIfAbsent.of(conf, pointer).create(pointer, ref.toJson.getBytes(UTF_8))
      catch {
        case NonFatal(failure) =>
          // Keep the data file if the pointer may have been created despite the failure.
          if (Try(!fileSystem.exists(pointer)).getOrElse(false)) {
            fileSystem.delete(data, false)
            segments.delete(sketches)
          }
          throw failure
      }
    if (created) {
      Some(ref)
    } else {
      fileSystem.delete(data, false)
      segments.delete(sketches)
      None
    }
  }

  /** The entries with only the statistics of the columns that are kept. */
  private def withColumns(entries: Seq[FileEntry], kept: Seq[IndexedColumn]): Seq[FileEntry] = {
    val names = kept.map(_.name).toSet
    entries.map(entry =>
      entry.copy(statistics = entry.statistics.filter { case (name, _) => names(name) }))
  }

  /** Reads the snapshot, bypassing the cache. Throws if it is missing or damaged. */
  private[pyzorder] def read(session: shim.SparkSession, ref: SnapshotRef): IndexSnapshot = {
    SnapshotChecks.entries(ref)
    SnapshotChecks.memory(ref)
    val path = ref.dataFile
    val fileSystem = path.getFileSystem(session.sessionState.newHadoopConf())
    val bytes = new SnapshotBytes(() => {
      val bytes = SnapshotFiles.readBytes(fileSystem, path, ref.length)
      SnapshotChecks.checksum(ref, SnapshotFiles.checksum(bytes))
      bytes
    })
    val reader = new SnapshotReader(
      () => new MemoryInputFile(bytes.get), ref.numFiles, ignored = warnOfStray(ref, _))
    new IndexSnapshot(ref.columns, reader.files(),
      column => {
        try Some(reader.column(column))
        catch {
          case ReadFailure(failure) =>
            warn(ref.folder, s"$path, column ${column.name}", failure)
            None
        }
      },
      () => reader.paths(),
      grown = () => SnapshotCache.grown(ref),
      checkObjects = () => SnapshotChecks.objects(ref, ref.columns.length),
      sketches =
        new StoredSketches(fileSystem, ref.folder, ref.sketches, warnOfSketches(ref.folder, _, _)))
  }

  /** The number of entries in each row group of the snapshot's file. */
  def rowGroups(hadoopConf: Configuration, ref: SnapshotRef): Seq[Int] = {
    val groups = SnapshotReader.rowGroups(HadoopInputFile.fromPath(ref.dataFile, hadoopConf))
    val entries = groups.map(_.toLong).sum
    if (entries != ref.numFiles) {
      throw new IllegalStateException(
        s"it has $entries entries instead of ${ref.numFiles}")
    }
    groups
  }

  /**
   * The `numFiles` entries in one row group of a snapshot's file. Spark tasks can call this method.
   */
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

  /** Warns once that a snapshot cannot be used. */
  def warn(ref: SnapshotRef, failure: Throwable): Unit =
    warn(ref.folder, ref.dataFile.toString, failure)

  private def pointerAt(
      fileSystem: FileSystem,
      folder: TableFolder,
      version: Long): SnapshotRef = {
    val pointer = new Path(folder.index, SnapshotRef.pointerName(version))
    checked(SnapshotRef.fromJson(folder, SnapshotFiles.readText(fileSystem, pointer)))
  }

  /** The pointer with this version; None if it cannot be read. */
  private[store] def readable(
      fileSystem: FileSystem,
      folder: TableFolder,
      version: Long): Option[SnapshotRef] =
    try Some(pointerAt(fileSystem, folder, version))
    catch { case ReadFailure(_) => None }

  /** The pointer that was listed with this status. It is taken from `parsed` if possible. */
  private def known(
      fileSystem: FileSystem,
      folder: TableFolder,
      version: Long,
      status: FileStatus): SnapshotRef = {
    val key = (folder, version, status.getLen, status.getModificationTime)
    Option(parsed.getIfPresent(key)).map(ref => checked(ref.copy(folder = folder))).getOrElse {
      val isSettled = System.currentTimeMillis - status.getModificationTime > SettledMillis
      val ref = pointerAt(fileSystem, folder, version)
      if (isSettled) parsed.put(key, ref)
      ref
    }
  }

  /**
   * Returns the pointer. Throws if one of its files is a link or is not a regular file. The data
   * file's checksum file is also checked, because Hadoop opens it when Spark reads the data file.
   */
  private def checked(ref: SnapshotRef): SnapshotRef = {
    val data = ref.dataFile
    Seq(new Path(ref.folder.index, ref.pointer), data, FileSystems.checksumFile(data))
      .find(path => Links.inOwn(path) || FileSystems.isSpecial(path))
      .foreach(path => throw new IllegalStateException(s"$path is not a regular file"))
    ref
  }

  /** The versions that have a pointer, in ascending order. */
  private[store] def versions(fileSystem: FileSystem, folder: TableFolder): Array[Long] =
    pointers(FileSystems.list(fileSystem, folder.index)).map(_._1).toArray

  /** The pointers among the files with their versions, in ascending order. */
  private def pointers(files: Seq[FileStatus]): Seq[(Long, FileStatus)] =
    files
      .flatMap(status => SnapshotRef.versionOf(status.getPath.getName).map(_ -> status))
      .sortBy(_._1)

  /**
   * Warns only once per snapshot, because a forged snapshot may contain any number of long paths.
   */
  private def warnOfStray(ref: SnapshotRef, path: String): Unit =
    if (warned.add(s"${ref.folder} ${ref.version}")) {
      log.warn(
        s"The skipping index of ${ref.folder} has an entry for " +
          s"${Printable(path.take(MessageLength))}, which is not a file of the table. Such " +
          s"entries are ignored. To remove them, run REFRESH SKIPPING INDEX ON '${ref.folder}'.")
    }

  private def warnOfSketches(folder: TableFolder, segment: String, failure: Throwable): Unit =
    if (warned.add(s"$folder $segment")) {
      log.warn(Printable(ZOrderErrors.withoutPassword(
            s"The sketches of $folder in $segment cannot be used, so files are skipped by their " +
              "minima and maxima alone: " +
              s"${String.valueOf(failure.getMessage).take(MessageLength)}")))
    }

  private def warn(folder: TableFolder, what: String, failure: Throwable): Unit =
    if (warned.add(what + String.valueOf(failure.getMessage).take(MessageLength))) {
      log.warn(Printable(ZOrderErrors.withoutPassword(
            s"The skipping index of $folder cannot be used, so all files are read: $what: " +
              s"${String.valueOf(failure.getMessage).take(MessageLength)}. To rebuild it, run " +
              s"REFRESH SKIPPING INDEX ON '$folder' or, without pyzorder's jar, " +
              "pyzorder.fallback.create_index.")))
    }
}
