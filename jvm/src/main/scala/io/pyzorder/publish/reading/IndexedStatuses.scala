package io.pyzorder.publish.reading

import scala.collection.immutable.IndexedSeq

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata

import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.storage.TableFolder

/**
 * The statuses of the files in one folder, determined from an index snapshot. A status is created
 * each time it is requested. A large table has millions of files, most of which are skipped, and
 * their statuses would take about 600 bytes each.
 *
 * @param folder  the files' folder
 * @param names   the names of all files in the snapshot, relative to the table's folder
 * @param entries the positions of the files' entries in the snapshot
 */
final class IndexedStatuses private[reading] (
    table: TableFolder,
    val folder: Path,
    private[reading] val snapshot: IndexSnapshot,
    names: Array[String],
    blockSize: Long,
    private[reading] val entries: Array[Int])
    extends IndexedSeq[FileStatus] {

  override def length: Int = entries.length

  override def apply(i: Int): FileStatus = {
    val entry = entries(i)
    new FileStatus(
      snapshot.size(entry), false, 1, blockSize, snapshot.modificationTime(entry),
      table.resolve(names(entry)))
  }

  /** The files' names in their folder. */
  private[reading] def fileNames: Seq[String] = entries.toSeq.map { entry =>
    names(entry).substring(names(entry).lastIndexOf('/') + 1)
  }

  /** The files that are not empty, in the form in which a scan receives them. */
  def forScan: IndexedFiles = {
    val filled = entries.filter(snapshot.size(_) > 0)
    new IndexedFiles(
      if (filled.length == entries.length) this
      else new IndexedStatuses(table, folder, snapshot, names, blockSize, filled))
  }
}

/** The same files, in the form in which a scan receives them. */
final class IndexedFiles private[reading] (statuses: IndexedStatuses)
    extends IndexedSeq[FileStatusWithMetadata] {

  override def length: Int = statuses.length

  override def apply(i: Int): FileStatusWithMetadata = FileStatusWithMetadata(statuses(i))

  /** The position of file i's entry in `snapshot`; None if the files come from another snapshot. */
  def entriesIn(snapshot: IndexSnapshot): Option[Int => Int] =
    if (snapshot eq statuses.snapshot) Some(statuses.entries(_)) else None
}
