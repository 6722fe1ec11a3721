package io.pyzorder.catalog

import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.index.model.DataFiles
import io.pyzorder.publish.reading.JournaledListing
import io.pyzorder.storage.FileRef

/** The data files a table consists of now, listed afresh and through its journal. */
object TableFiles {

  /** Every data file of the table, in all partitions. */
  def list(session: shim.SparkSession, table: ResolvedTable): Seq[FileRef] = {
    val folder = table.folder(session)
    table.relation.location.refresh()
    val listing = JournaledListing.current(
      session, table.relation.location, table.options, table.partitionSchema, Seq(folder), Nil)
    listing.files.listFiles(Nil, Nil).flatMap(_.files).map { file =>
      val status = file.fileStatus
      FileRef(folder.relativize(status.getPath), status.getLen, status.getModificationTime)
    }
  }

  /** `files` as the statistics' collector wants them. */
  def toIndex(table: ResolvedTable, files: Seq[FileRef]): DataFiles = DataFiles(
    table.root, table.provider, table.dataSchema, table.partitionSchema, table.options, files)
}
