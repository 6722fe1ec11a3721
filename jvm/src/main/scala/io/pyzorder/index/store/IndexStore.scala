package io.pyzorder.index.store

import java.util.Locale

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

import io.pyzorder.common.{ReadFailure, ZOrderErrors, ZOrderException}
import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.model.{IndexSchema, IndexedColumn}
import io.pyzorder.index.sketch.Sketches
import io.pyzorder.storage.{ExactFileIndex, FileSystems, Incarnation, Links, S3Status}
import io.pyzorder.storage.TableFolder
import io.pyzorder.storage.metadata.{ListedMetadata, MetadataNames}

/**
 * A table's index: immutable snapshots under `_zorder/_index`, each consisting of a data file and a
 * pointer. IndexPublisher writes them. The pointer with the highest version is current.
 */
object IndexStore {

  /** The incarnation that was last read for each table. */
  private val incarnations: Cache[TableFolder, String] =
    CacheBuilder.newBuilder().maximumSize(10000).build[TableFolder, String]()

  /**
   * Parsed pointers, keyed by folder, version, size, modification time and, on S3, entity tag. A
   * pointer file is never changed, so its contents are the same as long as these are the same.
   * Without a tag, a pointer is cached only if it was older than `SettledMillis` when it was read.
   * Otherwise, if the index is dropped and created again within one tick of the store's clock, the
   * new pointer could have the same version, size and time as the cached one.
   */
  private val parsed: Cache[(TableFolder, Long, Long, Long, Option[String]), SnapshotRef] =
    CacheBuilder.newBuilder().maximumSize(1000)
      .build[(TableFolder, Long, Long, Long, Option[String]), SnapshotRef]()

  private val SettledMillis = 10000L

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
        IndexWarnings.unusable(folder, folder.index.toString, failure)
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
          IndexWarnings.unusable(ref, failure)
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
          IndexWarnings.unusable(ref, failure)
          None
      }
    }

  /**
   * The index table as a relation over the snapshot's data file. Every column is nullable, because
   * Spark fails if a forged file lacks a value in another column.
   */
  def relation(session: shim.SparkSession, ref: SnapshotRef): LogicalPlan = {
    val (path, schema) = (ref.dataFile, IndexSchema.of(distinct(session, ref.columns)))
    val hadoopConf = session.sessionState.newHadoopConf()
    try {
      SnapshotChecks.intact(hadoopConf, ref)
      SnapshotChecks.readable(HadoopInputFile.fromPath(path, hadoopConf), schema)
    } catch {
      case ReadFailure(failure) =>
        IndexWarnings.unusable(ref, failure)
        throw ZOrderErrors.indexNotFound(ref.folder.toString)
    }
    val files = Seq(ExactFileIndex.status(path, ref.length, 0L))
    val location =
      new ExactFileIndex(path, new StructType(), Seq((InternalRow.empty, files)))
    LogicalRelation(HadoopFsRelation(
        location, new StructType(), StructType(schema.map(nullable)), None,
        new ParquetFileFormat, Map.empty)(session))
  }

  /** The columns whose names the session can tell apart. */
  private def distinct(
      session: shim.SparkSession,
      columns: Seq[IndexedColumn]): Seq[IndexedColumn] = {
    val exact = session.sessionState.conf.caseSensitiveAnalysis
    def key(column: IndexedColumn) =
      if (exact) column.name else column.name.toLowerCase(Locale.ROOT)
    val named = columns.groupBy(key)
    columns.filter(column => named(key(column)).length == 1)
  }

  private def nullable(field: StructField): StructField = field.copy(
    nullable = true,
    dataType = field.dataType match {
      case ArrayType(elements, _) => ArrayType(elements, containsNull = true)
      case other => other
    })

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
      () => new MemoryInputFile(bytes.get), ref.numFiles, ignored = IndexWarnings.stray(ref, _))
    new IndexSnapshot(ref.columns, reader.files(),
      column => {
        try Some(reader.column(column))
        catch {
          case ReadFailure(failure) =>
            IndexWarnings.unusable(ref.folder, s"$path, column ${column.name}", failure)
            None
        }
      },
      () => reader.paths(),
      grown = () => SnapshotCache.grown(ref),
      checkObjects = () => SnapshotChecks.objects(ref, ref.columns.length),
      sketches =
        if (ref.sketches.isEmpty) Sketches.None
        else new StoredSketches(fileSystem, ref.folder, ref.sketches,
          ref.sketched.getOrElse(ref.columns.map(_.name)).toSet,
          IndexWarnings.sketches(ref.folder, _, _)))
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

  private def pointerAt(
      fileSystem: FileSystem,
      folder: TableFolder,
      version: Long): SnapshotRef = {
    val pointer = MetadataNames.pointer(folder, version)
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
    val tag = Some(status).collect { case onS3: S3Status => onS3.tag }
    val key = (folder, version, status.getLen, status.getModificationTime, tag)
    Option(parsed.getIfPresent(key)).map(ref => checked(ref.copy(folder = folder))).getOrElse {
      val isSettled =
        tag.isDefined || System.currentTimeMillis - status.getModificationTime > SettledMillis
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
    Seq(ref.pointer, data, FileSystems.checksumFile(data))
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
      .flatMap(status => MetadataNames.versionOf(status.getPath.getName).map(_ -> status))
      .sortBy(_._1)
}
