package io.pyzorder.publish.relocate

import org.apache.spark.sql.pyzorder.shim

import org.apache.hadoop.fs.Path

import io.pyzorder.publish.journal.{Records, RunRecords}
import io.pyzorder.storage.TableFolder

/**
 * How a run is published by one change in the catalog: folders are filled that nobody knows, then
 * the catalog names them in place of those that were read. Before COMMIT it is undone, after it
 * completed, by whoever holds the lock; both may be repeated.
 */
private[publish] trait CatalogSwitch {

  /** An error unless the catalog, and the files that were read, are as they were. */
  def check(): Unit

  /** Makes the folders to fill. */
  def make(): Unit

  /** Copies what others have added to the folders since they were read. */
  def carry(): Unit

  /** Before COMMIT: deletes the filled folders. */
  def undo(): Unit

  /**
   * After COMMIT, when the folders are whole.
   *
   * @param alive whether nobody else can be doing the same by now
   * @param reach tells where it is, for tests
   * @return what others did meanwhile, empty: nothing
   */
  def complete(alive: () => Boolean, reach: String => Unit): Seq[String]

  /** Folders outside of the table's that are being filled, and carry this run's mark. */
  def marked: Set[Path]

  /** A folder that the record reads, and that by the catalog is none of the table's. */
  def strange: Option[String]

  /** The folder that is filled, or that holds those that are, for messages. */
  def filled: TableFolder
}

private[publish] object CatalogSwitch {

  /**
   * What a run switches in the catalog, as it is now; None: no record says so. No run switches to
   * the table's own folder, in which others can put a mark.
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
