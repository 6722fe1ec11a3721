package io.pyzorder.index.store

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.index.model.{DeniedColumns, FileEntry, IndexedColumn}
import io.pyzorder.storage.{CreateIfAbsent, Incarnation, MetadataFiles, RunNumber, TableFolder}
import io.pyzorder.storage.metadata.NewestMetadata

/**
 * Publishes and deletes snapshots of a table's index (see IndexStore). A snapshot's pointer is
 * written last, and only if no other writer has created a pointer with the same version.
 */
object IndexPublisher {

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
    NewestMetadata.write(hadoopConf, folder)
    published.get
  }

  /**
   * Records that a writer has changed files without adding entries. An existing index, even one
   * that cannot be read just now, then does not cover any folder until the table has been listed
   * again.
   *
   * @param properties see `publish`
   */
  def uncover(
      session: shim.SparkSession,
      folder: TableFolder,
      properties: Map[String, String] = Map.empty): Unit =
    if (IndexStore.lastColumns(session.sessionState.newHadoopConf(), folder).isDefined) {
      publish(session, folder, identity, identity, properties, voids = true)
    }

  /**
   * Removes the index. From then on, queries read all of the table's files. The newest snapshot is
   * removed last, so that no reader takes an older one for the newest.
   */
  def drop(session: shim.SparkSession, folder: TableFolder): Unit = {
    val hadoopConf = session.sessionState.newHadoopConf()
    new OldSnapshots(folder.index.getFileSystem(hadoopConf), folder).deletePointers()
    MetadataFiles.delete(hadoopConf, folder.index)
  }

  /** See OldSnapshots.deleteReplaced. */
  def deleteReplaced(hadoopConf: Configuration, folder: TableFolder, by: Long): Unit =
    new OldSnapshots(folder.index.getFileSystem(hadoopConf), folder).deleteReplaced(by)

  /** Removes the snapshots of a former incarnation of the table. */
  def removeOf(hadoopConf: Configuration, folder: TableFolder, incarnation: String): Unit =
    new OldSnapshots(folder.index.getFileSystem(hadoopConf), folder).removeOf(incarnation)

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
    val base = IndexStore.versions(fileSystem, folder).lastOption.getOrElse(0L)
    if (base + 1 >= RunNumber.Greatest) throw ZOrderErrors.usedUpNumbers(folder.index.toString)
    val current = incarnation.getOrElse(Incarnation.readOrCreate(conf, folder))
    val before = IndexStore.latest(conf, folder)
      .filter(ref => ref.version == base && ref.incarnation == current)
    val loaded = before.flatMap(ref => IndexStore.loadAll(session, ref)(_.entries).map(ref -> _))
    val isUnknown = base > 0 && loaded.isEmpty // the index exists but cannot be read
    val (known, old) = loaded.fold((Seq.empty[IndexedColumn], Seq.empty[FileEntry])) {
      case (ref, entries) => (ref.columns, entries)
    }
    val kept = columns(known)
    val changed = change(withColumns(old, known.filter(kept.contains))).sortBy(_.path)
    val version = base + 1
    val segments = new SketchSegments(
      conf, folder, loaded.fold(Seq.empty[SegmentRef])(_._1.sketches), kept,
      IndexWarnings.sketches(folder, _, _))
    val (entries, sketches) = segments.store(version, changed)
    val bytes = SnapshotWriter.bytesOf(session, kept, entries)
    val ref = SnapshotRef(
      folder,
      version,
      current,
      s"_snapshot-$version-${UUID.randomUUID()}",
      bytes.length.toLong,
      SnapshotFiles.checksum(bytes),
      entries.length,
      kept,
      if (isUnknown) None else coverage(before, entries),
      if (voids || isUnknown) version else before.fold(0L)(_.coverableSince),
      sketches,
      sketched(before.flatMap(_.sketched).orElse(SketchSegments.columnsIn(changed)))
        .map(kept.map(_.name).intersect(_)),
      before.fold(UUID.randomUUID.toString)(_.lineage))
    val data = new Path(folder.index, ref.file)
    SnapshotFiles.write(fileSystem, data, bytes)
    MetadataFiles.share(conf, data)
    val pointer = ref.pointer
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
    if (created && isUpToDate(fileSystem, ref, base, before)) {
      Some(ref)
    } else {
      if (created) fileSystem.delete(pointer, false)
      fileSystem.delete(data, false)
      segments.delete(sketches)
      None
    }
  }

  /**
   * Whether a snapshot that has just been published belongs to the current index. If the index was
   * dropped and created again in the meantime, or if so many snapshots were published that old
   * numbers are free again, it does not, and must be built again.
   *
   * @param base   the version on which the snapshot is built; 0 if there was no index
   * @param before the snapshot with this version, if it could be read
   */
  private def isUpToDate(
      fileSystem: FileSystem,
      ref: SnapshotRef,
      base: Long,
      before: Option[SnapshotRef]): Boolean = {
    def read(version: Long) = IndexStore.readable(fileSystem, ref.folder, version)
    val now = IndexStore.versions(fileSystem, ref.folder)
    if (now.isEmpty) true // the index has been dropped since
    else if (base == 0) read(now.last).forall(_.lineage == ref.lineage)
    else now.contains(base) && before.forall(known => read(base).forall(_.file == known.file))
  }

  /** The entries with only the statistics of the columns that are kept. */
  private def withColumns(entries: Seq[FileEntry], kept: Seq[IndexedColumn]): Seq[FileEntry] = {
    val names = kept.map(_.name).toSet
    entries.map(entry =>
      entry.copy(statistics = entry.statistics.filter { case (name, _) => names(name) }))
  }
}
