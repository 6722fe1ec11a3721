package io.pyzorder.publish.relocate

import org.apache.spark.sql.pyzorder.shim

import org.apache.hadoop.fs.Path

import io.pyzorder.publish.journal.{Records, RunRecords}
import io.pyzorder.storage.TableFolder

/**
 * Publishes a run with a single change to the catalog. The run fills new folders, to which nothing
 * refers yet, and then switches the catalog from the folders that were read to the new ones. The
 * holder of the lock can undo the switch before COMMIT, and complete it after COMMIT. Both
 * operations can be repeated.
 */
private[publish] trait CatalogSwitch {

  /** Throws unless the catalog and the files that were read are unchanged. */
  def check(): Unit

  /** Creates the folders to fill. */
  def make(): Unit

  /** Copies files that other writers have added since the folders were read. */
  def carry(): Unit

  /**
   * Deletes the filled folders that the catalog does not name. Called if the run is undone, or if
   * changes by other writers prevent the switch after COMMIT.
   */
  def undo(): Unit

  /**
   * Changes the catalog. Called after COMMIT, when the folders are complete.
   *
   * @param alive whether this writer still holds the lock; if so, no other writer completes the
   *              same switch
   * @param reach reports fail points, which tests use
   * @return the conflicts with other writers; empty if there are none
   */
  def complete(alive: () => Boolean, reach: String => Unit): Seq[String]

  /** The folders outside the table's folder that are being filled and contain this run's mark. */
  def marked: Set[Path]

  /**
   * A folder from which the run has read files according to its record, but which does not belong
   * to the table according to the catalog. None if there is no such folder.
   */
  def strange: Option[String]

  /** The folder that this run fills, or the common ancestor of the folders that it fills. */
  def filled: TableFolder
}

private[publish] object CatalogSwitch {

  /**
   * The catalog switch of a run according to its current records. None if no record describes a
   * switch. A record is ignored if it would switch to the table's own folder. No genuine run writes
   * such a record, and others could forge the mark in that folder.
   */
  def of(
      session: shim.SparkSession,
      folder: TableFolder,
      run: Long,
      records: RunRecords): Option[CatalogSwitch] =
    records.existing("switch").flatMap(Records.switch).filter(_.to != folder.root.getName)
      .map(new TableLocationSwitch(session, folder, run, _))
      .orElse(records.existing("partitions").flatMap(Records.partitions)
          .filter(_.to != folder.root.getName).map(new PartitionLocationSwitch(session, folder, run,
              _)))
}
