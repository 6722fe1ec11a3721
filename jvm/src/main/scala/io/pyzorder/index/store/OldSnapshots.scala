package io.pyzorder.index.store

import java.io.{FileNotFoundException, IOException}

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileSystem, Path}
import org.slf4j.LoggerFactory

import io.pyzorder.index.model.DeniedColumns
import io.pyzorder.storage.{FileSystems, Links, TableFolder}
import io.pyzorder.storage.metadata.{MetadataNames, NewestMetadata}

/**
 * Deletes snapshots that are no longer needed, and segments of sketches that no snapshot refers to.
 */
private[store] final class OldSnapshots(fileSystem: FileSystem, folder: TableFolder) {
  import OldSnapshots._

  /**
   * Deletes old snapshots. The data file of each snapshot is deleted before its pointer. The most
   * recent snapshots are kept, because readers may still use them. However, if any columns are
   * denied, recent snapshots that have statistics of a denied column or that cannot be read are
   * also deleted, with all snapshots before them (see `delete`).
   */
  def deleteOld(denied: DeniedColumns): Unit =
    try {
      val before = IndexStore.versions(fileSystem, folder).dropRight(1)
      val (old, recent) = before.splitAt(before.length - KeptSnapshots + 1)
      val withDeniedColumns =
        if (denied.isEmpty) Array.empty[Long]
        else recent.filter(version =>
          IndexStore.readable(fileSystem, folder, version)
            .forall(_.columns.exists(denied(_))))
      delete(before, (old ++ withDeniedColumns).lastOption)
      deleteUnused()
    } catch {
      case NonFatal(failure) =>
        log.info(s"Old index snapshots of $folder could not be deleted: ${failure.getMessage}")
    }

  /**
   * Deletes the snapshots that were replaced at or before the time `by`, which is given in
   * milliseconds according to the store's clock, and all snapshots before them. Such snapshots may
   * still contain minima and maxima of rows that no longer exist.
   */
  def deleteReplaced(by: Long): Unit = {
    val known = IndexStore.versions(fileSystem, folder)
    delete(known,
      known.zip(known.drop(1)).collect {
        case (version, next) if isReplaced(next, by) => version
      }.lastOption)
    deleteUnused()
  }

  private def isReplaced(next: Long, by: Long): Boolean =
    try {
      val pointer = MetadataNames.pointer(folder, next)
      fileSystem.getFileStatus(pointer).getModificationTime <= by
    } catch { case _: FileNotFoundException => false } // deleted by another process

  /** Deletes the newest pointers in ascending order. There may be any number of forged ones. */
  def deletePointers(): Unit =
    IndexStore.versions(fileSystem, folder).takeRight(MostPointers)
      .foreach(version => remove(MetadataNames.pointer(folder, version)))

  /** Removes the snapshots of a former incarnation of the table. */
  def removeOf(incarnation: String): Unit = {
    remove(NewestMetadata.fileOf(folder)) // may be missing or outdated at any time
    IndexStore.versions(fileSystem, folder).foreach { version =>
      IndexStore.readable(fileSystem, folder, version).filter(_.incarnation == incarnation)
        .foreach { ref =>
          remove(ref.pointer)
          (ref.file +: ref.sketches.map(_.file)).foreach(name =>
            remove(new Path(folder.index, name)))
        }
    }
  }

  /**
   * Deletes the known snapshots up to `last`, in ascending order, so that there is never a gap
   * between the remaining ones (see NewestMetadata). Lists the folder only once, because it may
   * contain any number of forged pointers.
   */
  private def delete(known: Seq[Long], last: Option[Long]): Unit = last.foreach { last =>
    val data = FileSystems.list(fileSystem, folder.index).map(_.getPath)
      .filter(_.getName.startsWith(Data)).groupBy(_.getName.stripPrefix(Data).takeWhile(_ != '-'))
    known.takeWhile(_ <= last).foreach { version =>
      data.getOrElse(version.toString, Nil).foreach(remove)
      remove(MetadataNames.pointer(folder, version))
    }
  }

  /** Deletes a file. Keeps a folder with the same name that contains files, or a link to one. */
  private def remove(path: Path): Unit =
    try fileSystem.delete(path, false)
    catch {
      case _: IOException
          if Links.isOne(path) ||
            FileSystems.status(fileSystem, path).exists(_.isDirectory) => ()
    }

  /**
   * Deletes the segments that no snapshot refers to, except those for a snapshot that has not been
   * published yet. The name of such a segment contains a version that is greater than the version
   * of every snapshot. If a snapshot cannot be read, no segments are deleted, because that snapshot
   * may refer to them.
   */
  private def deleteUnused(): Unit = {
    val segments = FileSystems.list(fileSystem, folder.index).map(_.getPath.getName)
      .flatMap(name => SegmentRef.versionOf(name).map(name -> _))
    val known = if (segments.isEmpty) Array.empty[Long] else IndexStore.versions(fileSystem, folder)
    if (known.nonEmpty) {
      def namesIn(version: Long): Option[Set[String]] =
        IndexStore.readable(fileSystem, folder, version).map(_.sketches.map(_.file).toSet)
      val own = namesIn(known.last).getOrElse(Set.empty)
      if (!segments.forall { case (name, _) => own(name) }) {
        val used = known.map(namesIn)
        if (used.forall(_.isDefined)) {
          segments.filter { case (name, version) =>
            version <= known.last && !used.exists(_.exists(_.contains(name)))
          }.foreach { case (name, _) => remove(new Path(folder.index, name)) }
        }
      }
    }
  }
}

private object OldSnapshots {

  private val log = LoggerFactory.getLogger(classOf[OldSnapshots])

  /** The prefix of the name of a snapshot's data file. The version and `-` follow it. */
  private val Data = "_snapshot-"

  /** The number of snapshots to keep after publishing a new one. */
  private val KeptSnapshots = 10

  /** More pointers than an index has, unless deletions have failed many times. */
  private val MostPointers = 100
}
