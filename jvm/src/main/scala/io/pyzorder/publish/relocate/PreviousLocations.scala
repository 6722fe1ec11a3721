package io.pyzorder.publish.relocate

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.storage.{FileRef, TableFolder}

/** The OPTIMIZE that a RESTORE would undo, if it was published by switching locations. */
sealed trait LastSwitch

object LastSwitch {

  /**
   * A switch of the table's location.
   *
   * @param home   the folder of the files in `retire`
   * @param retire the files that were replaced
   * @param add    the files in the table's folder that replaced them
   */
  final case class OfTable(home: TableFolder, retire: Seq[FileRef], add: Seq[FileRef])
      extends LastSwitch

  /**
   * A switch of the locations of partitions.
   *
   * @param add the files that the switch wrote, in their current state
   */
  final case class OfPartitions(switch: PartitionLocationSwitch, add: Seq[FileRef])
      extends LastSwitch
}

/**
 * The previous folders of a table or of its partitions, except those that VACUUM has deleted. Only
 * the holder of the lock on the table's folder may call `carry` and `delete`.
 *
 * @param folder the table's current folder
 * @param name   the table's name in the catalog; None if it was named by its path, in which case
 *               its partitions are unknown
 */
final class PreviousLocations(
    session: shim.SparkSession,
    folder: TableFolder,
    name: Option[TableIdentifier]) {

  private val table = new PreviousTableLocations(session, folder)
  private val partitions = new PreviousPartitionLocations(session, folder, name)

  /** Whether the table itself has previous locations. */
  def movedTable: Boolean = !table.isEmpty

  /** Throws overwrittenBehind if a previous folder was overwritten. */
  def check(): Unit = {
    table.check()
    partitions.check()
  }

  /**
   * Copies files to the current location of the table or partition if an INSERT that was planned
   * before a switch has added them to a previous folder. Throws overwrittenBehind if a previous
   * folder was overwritten.
   */
  def carry(): Unit = {
    table.carry()
    partitions.carry()
  }

  /**
   * The table's files in those previous folders whose retention period has ended.
   *
   * @param kept how long a folder is kept after a switch, in milliseconds
   * @param at   the current time in milliseconds since the epoch, according to the store's clock
   */
  def garbage(kept: Long, at: Long): Seq[FileStatus] =
    table.garbage(kept, at) ++ partitions.garbage(kept, at)

  /**
   * Deletes the files in `garbage`, and folders that become empty.
   *
   * @param deleted called after each file with the number of files deleted so far for the same run
   *                or table folder
   */
  def delete(kept: Long, at: Long, deleted: Int => Unit): Unit = {
    table.delete(kept, at, deleted)
    partitions.delete(kept, at, deleted)
  }

  /**
   * The last OPTIMIZE, if it was published by switching locations. Throws ZORDER_CANNOT_RESTORE if
   * this OPTIMIZE cannot be undone.
   *
   * @param within the number of the last run that replaced files in place
   */
  def lastSwitch(within: Option[Long]): Option[LastSwitch] =
    partitions.lastSwitch(after = within.getOrElse(0L)).orElse {
      if (within.isDefined || table.isEmpty) None else Some(table.lastOptimize)
    }
}
