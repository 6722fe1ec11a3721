package io.pyzorder.publish.relocate

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.storage.{FileRef, TableFolder}

/** The OPTIMIZE that a RESTORE undoes, where it was published by a switch of locations. */
sealed trait LastSwitch

object LastSwitch {

  /**
   * Of the table's location.
   *
   * @param home   the folder that the files `retire` lie in
   * @param retire what was replaced
   * @param add    what took its place, files of the table's folder
   */
  final case class OfTable(home: TableFolder, retire: Seq[FileRef], add: Seq[FileRef])
      extends LastSwitch

  /**
   * Of partitions' locations.
   *
   * @param add the files it has written, as they are
   */
  final case class OfPartitions(switch: PartitionLocationSwitch, add: Seq[FileRef])
      extends LastSwitch
}

/**
 * The folders that a table or its partitions were switched away from and that VACUUM has not
 * deleted. For the holder of the lock of the table's folder.
 *
 * @param folder the table's folder now
 * @param name   in the catalog; None: named by its path, and then nothing is known of partitions
 */
final class PreviousLocations(
    session: shim.SparkSession,
    folder: TableFolder,
    name: Option[TableIdentifier]) {

  private val table = new PreviousTableLocations(session, folder)
  private val partitions = new PreviousPartitionLocations(session, folder, name)

  /** Whether the table itself has lain elsewhere. */
  def movedTable: Boolean = !table.isEmpty

  /**
   * Copies what was written into these folders, by INSERTs that were planned before a switch, to
   * where the table or the partition lies now. Throws overwrittenBehind where one was overwritten
   * instead.
   */
  def carry(): Unit = {
    table.carry()
    partitions.carry()
  }

  /**
   * Their files that may be deleted: kept for long enough, and the table's own.
   *
   * @param kept milliseconds since a switch for which a folder is kept
   * @param at   milliseconds since the epoch, by the store's clock
   */
  def garbage(kept: Long, at: Long): Seq[FileStatus] =
    table.garbage(kept, at) ++ partitions.garbage(kept, at)

  /**
   * Deletes them, and folders that this leaves empty.
   *
   * @param deleted told after each file of a run how many there were so far
   */
  def delete(kept: Long, at: Long, deleted: Int => Unit): Unit = {
    table.delete(kept, at, deleted)
    partitions.delete(kept, at, deleted)
  }

  /**
   * The last OPTIMIZE, if it was published by a switch. Throws ZORDER_CANNOT_RESTORE where that
   * cannot be undone.
   *
   * @param within number of the last run that replaced files within their folders
   */
  def lastSwitch(within: Option[Long]): Option[LastSwitch] =
    partitions.lastSwitch(after = within.getOrElse(0L)).orElse {
      if (within.isDefined || table.isEmpty) None else Some(table.lastOptimize)
    }
}
