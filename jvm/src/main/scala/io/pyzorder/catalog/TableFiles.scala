package io.pyzorder.catalog

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.{CatalogFileIndex, FileIndex}
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.index.model.DataFiles
import io.pyzorder.index.store.{IndexStore, ListedTable}
import io.pyzorder.publish.reading.{JournaledListing, SelectedPartitions}
import io.pyzorder.storage.{FileRef, TableFolder}

/** Lists the current data files of a table, based on a fresh listing and on the journal. */
object TableFiles {

  /** All data files of the table, in all partitions. */
  def list(session: shim.SparkSession, table: ResolvedTable): Seq[FileRef] = {
    val folder = table.folder(session)
    listing(session, table).listFiles(Nil, Nil).flatMap(_.files)
      .map { file =>
        val status = file.fileStatus
        FileRef(folder.relativize(status.getPath), status.getLen, status.getModificationTime)
      }
  }

  /** Lists the table, taking its journal into account. */
  def listing(session: shim.SparkSession, table: ResolvedTable): FileIndex =
    listing(session, table, where = None, Seq(table.folder(session)))

  /**
   * Lists the table without regard to its journal, which must not contain an unfinished run that
   * has moved files.
   *
   * @param where a condition on the partition columns; partitions that it excludes may be missing
   */
  def withoutJournal(
      session: shim.SparkSession,
      table: ResolvedTable,
      where: Option[Expression] = None): FileIndex =
    listing(session, table, where, Nil)

  private def listing(
      session: shim.SparkSession,
      table: ResolvedTable,
      where: Option[Expression],
      journals: Seq[TableFolder]): FileIndex = {
    val selected = SelectedPartitions.none(table.partitionSchema).or(where.toSeq)
    val index = IndexStore.latest(session.sessionState.newHadoopConf(), table.folder(session))
    JournaledListing.anew(
      session, table.relation.location, table.options, selected, journals, index.toSeq)
  }

  /**
   * Runs `list`, which must list all data files of the table. Returns its result and a description
   * of the listing.
   */
  def listed[T](session: shim.SparkSession, table: ResolvedTable)(
      list: => T)(filesOf: T => Seq[FileRef]): (T, ListedTable) = {
    val before = IndexStore.latest(session.sessionState.newHadoopConf(), table.folder(session))
    val at = System.currentTimeMillis()
    val found = list
    val files = filesOf(found)
    val now = files.toSet
    val gone = before
      .flatMap(IndexStore.loadAll(session, _)(_.described.filterNot(now).toSet))
      .getOrElse(Set.empty[FileRef])
    val isWhole = !table.relation.location.isInstanceOf[CatalogFileIndex]
    found -> ListedTable(at, before, isWhole, files, gone)
  }

  /**
   * The input of the statistics collector. Excludes a file if Links.strange rejects the link that
   * leads to it.
   */
  def toIndex(
      session: shim.SparkSession,
      table: ResolvedTable,
      files: Seq[FileRef]): DataFiles = {
    val folder = table.folder(session)
    DataFiles(
      table.root, table.provider, table.dataSchema, table.partitionSchema, table.options,
      files.toIndexedSeq.filterNot(file => folder.isStrange(folder.resolve(file.path))))
  }

  /**
   * Throws if Links.strange rejects the link that leads to one of the files. Rewriting such a file
   * would copy another user's rows into the table.
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
