package io.pyzorder.catalog

import org.apache.spark.sql.execution.datasources.CatalogFileIndex
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.index.model.DataFiles
import io.pyzorder.index.store.{IndexStore, ListedTable}
import io.pyzorder.publish.reading.{JournaledListing, SelectedPartitions}
import io.pyzorder.storage.FileRef

/** Lists the current data files of a table, with a fresh listing that applies the journal. */
object TableFiles {

  /** All data files of the table, in all partitions. */
  def list(session: shim.SparkSession, table: ResolvedTable): Seq[FileRef] =
    listed(session, table).files

  /** A listing that begins now and has no files yet. */
  def beginListing(session: shim.SparkSession, table: ResolvedTable): ListedTable = {
    val hadoopConf = session.sessionState.newHadoopConf()
    val since = IndexStore.latest(hadoopConf, table.folder(session)).fold(0L)(_.version)
    ListedTable(
      System.currentTimeMillis(), since,
      isWhole = !table.relation.location.isInstanceOf[CatalogFileIndex], Nil)
  }

  /** All data files of the table, with the time at which the listing began. */
  def listed(session: shim.SparkSession, table: ResolvedTable): ListedTable = {
    val begun = beginListing(session, table)
    val folder = table.folder(session)
    table.relation.location.refresh()
    val listing = JournaledListing.current(
      session, table.relation.location, table.options,
      SelectedPartitions.all(table.partitionSchema), Seq(folder), Nil)
    val files = listing.files.listFiles(Nil, Nil).flatMap(_.files).map { file =>
      val status = file.fileStatus
      FileRef(folder.relativize(status.getPath), status.getLen, status.getModificationTime)
    }
    begun.copy(files = files)
  }

  /** Input for the statistics collector, without files behind links that Links.strange rejects. */
  def toIndex(
      session: shim.SparkSession,
      table: ResolvedTable,
      files: Seq[FileRef]): DataFiles = {
    val folder = table.folder(session)
    DataFiles(
      table.root, table.provider, table.dataSchema, table.partitionSchema, table.options,
      files.filterNot(file => folder.isStrange(folder.resolve(file.path))))
  }

  /**
   * Throws if a file is behind a link that Links.strange rejects: rewriting it would copy another
   * user's rows into the table.
   */
  def checkLinks(
      session: shim.SparkSession,
      table: ResolvedTable,
      files: Seq[FileRef]): Unit = {
    val folder = table.folder(session)
    files.map(file => folder.resolve(file.path)).find(folder.isStrange)
      .foreach(link => throw ZOrderErrors.strangeLink(link.toString))
  }
}
