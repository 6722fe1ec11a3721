package io.pyzorder.publish.relocate

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.{ZOrderErrors, ZOrderException}
import io.pyzorder.publish.journal.{FillingMark, JournalState, Records, RetireRecord, RunFiles}
import io.pyzorder.publish.journal.SwitchRecord
import io.pyzorder.storage.{CreateIfAbsent, FileSystems, MetadataFiles, SiblingFolder, TableFolder}

/**
 * A run that publishes its files with a single change to the catalog. It fills a folder `to` beside
 * the table's folder `from` and then switches the table's location to it. No file in `from` is
 * touched, so a reader in any engine sees either all of the old folder or all of the new one:
 *
 *  - Before the switch, the table is the unchanged `from`. No reader looks at `to`, which may be
 *    missing or incomplete.
 *  - The switch is one catalog call, which either succeeds or has no effect.
 *  - After the switch, the table is `to`, which has contained every row since before COMMIT. A
 *    query that was planned before the switch reads `from`, which is kept until VACUUM.
 *
 * Each folder has its own `_zorder`, with an index and a journal for its own files. The index
 * entries of one folder are therefore never compared with the files of the other.
 *
 * The holder of the lock undoes an unfinished run before COMMIT by deleting `to`, and completes it
 * after COMMIT. Switching to the same folder twice has the same effect as switching once. A late
 * call by a writer that was declared dead is therefore harmless, unless the table has been switched
 * away from `to` by then.
 *
 * A catalog offers no compare-and-swap operation, so other writers may change `from` at about the
 * time of the switch. If an INSERT is planned before the switch and commits after the switch, it
 * writes into `from`. `carry` copies the INSERT's files to the table's current folder, either right
 * after the switch or with the next write command. If `from` was overwritten, the switch is
 * reverted, unless other writers have since changed the files in `to`.
 *
 * @param from   the table's folder when the run began; the table is not partitioned
 * @param run    the run's number in the journal of `from`
 * @param record the run's record in that journal
 */
private[publish] final class TableLocationSwitch(
    session: shim.SparkSession,
    val from: TableFolder,
    run: Long,
    val record: SwitchRecord)
    extends CatalogSwitch {

  private val hadoopConf = session.sessionState.newHadoopConf()
  private val fs = from.root.getFileSystem(hadoopConf)
  private val left = new PreviousLocation(
    session, from, from.root, record.read, new Path(from.zorder, s"_carried/_$run"),
    record.to.takeRight(8))
  private val files = new RunFiles(
    hadoopConf, from, run, RetireRecord(record.incarnation, record.read, Nil, Nil))

  /** The new folder of the table. */
  val to: TableFolder = SiblingFolder.of(from, record.to)

  override def filled: TableFolder = to

  override def check(): Unit = {
    if (!location.contains(from.root)) {
      throw ZOrderErrors.conflict(location.fold(s"$tableName was dropped or renamed")(place =>
          s"the location of $tableName was changed to $place"))
    }
    checkFiles()
  }

  private def checkFiles(): Unit = {
    files.checkFolders()
    files.checkInputs()
  }

  /**
   * Creates `to` with the permissions of `from`, and records in `to` that it was filled from
   * `from`.
   */
  override def make(): Unit = {
    if (!fs.mkdirs(to.root)) throw new IOException(s"cannot create ${to.root}")
    MetadataFiles.share(hadoopConf, to.root, from.root)
    FillingMark.put(hadoopConf, to.root, from, Records.write(record))
    val origin = SiblingFolder.originFile(to)
    CreateIfAbsent.of(hadoopConf, origin).create(origin, from.root.getName.getBytes(UTF_8))
  }

  override def carry(): Unit = carry(to)

  /** Whether `to` contains this record's mark, which is removed once the catalog names `to`. */
  private def isMine: Boolean = FillingMark.isIn(hadoopConf, to.root, from, Records.write(record))

  /**
   * Deletes `to` unless the catalog names it. Until the catalog names `to`, no other process uses
   * it.
   */
  override def undo(): Unit =
    if (isMine && !location.contains(to.root)) fs.delete(to.root, true)

  override def marked: Set[Path] = Set.empty

  override def strange: Option[String] = None

  /**
   * Does nothing if the mark is missing, because then either the switch is finished or the record
   * is forged.
   */
  override def complete(alive: () => Boolean, reach: String => Unit): Seq[String] =
    if (!isMine) Nil
    else {
      val problems = switch(alive, reach)
      FillingMark.remove(hadoopConf, to.root)
      problems
    }

  private def switch(alive: () => Boolean, reach: String => Unit): Seq[String] = location match {
    case Some(place) if place == from.root =>
      changed match {
        case Some(conflict) =>
          undo()
          Seq(conflict)
        case None =>
          carry(to)
          if (!alive()) throw ZOrderErrors.conflict(
            "this process sent no heartbeat for longer than its lease")
          reach("before-switch")
          val filled = visible
          alter(to)
          reach("after-switch")
          changed match {
            case Some(conflict) if visible.toSet == filled.toSet =>
              alter(from)
              undo()
              Seq(conflict)
            case conflict => settle(conflict)
          }
      }
    case Some(place) if place == to.root => settle(changed)
    case Some(place) => Seq(s"the location of $tableName was changed to $place")
    case None => Seq(s"$tableName was dropped or renamed")
  }

  /**
   * Finishes the run after the switch. `conflict` describes how others have changed the files in
   * `from`; it is None if they are unchanged.
   */
  private def settle(conflict: Option[String]): Seq[String] = {
    if (conflict.isEmpty) carry(to)
    conflict.toSeq
  }

  /**
   * A description of how others have changed the files that were read; None if they are unchanged.
   */
  private def changed: Option[String] =
    try {
      checkFiles()
      None
    } catch {
      case conflict: ZOrderException => Option(conflict.getMessageParameters.get("what"))
          .orElse(Some(conflict.sentence))
    }

  /** Files that were added to `from` after the run read it and have not been copied yet. */
  def late: Seq[FileStatus] = left.late

  /** Whether a file that the run read is no longer in `from`. */
  def incomplete: Boolean = left.incomplete

  /**
   * Copies the files in `late` to the table's current folder and marks them in `from` as copied.
   *
   * @param table `to`, or the folder that the table has since been switched to
   */
  def carry(table: TableFolder): Unit = left.carry(table.root, table)

  /**
   * The files in `from` that belong to the table and that VACUUM may delete. The folder may also
   * contain other files.
   */
  def ownFiles: Seq[FileStatus] = left.ownFiles

  /** The files below `_zorder` in `from`. */
  def ownRecords: Seq[FileStatus] = FileSystems.filesBelow(fs, from.zorder)

  private def visible: Seq[FileStatus] = SiblingFolder.dataFiles(hadoopConf, to.root)

  private def tableName: String = record.table.copy(catalog = None).quotedString

  /** The table's location according to the catalog; None if there is no such table. */
  private def location: Option[Path] = TableLocationSwitch.location(session, record.table)

  private def alter(place: TableFolder): Unit = {
    val catalog = session.sessionState.catalog
    val entry = catalog.externalCatalog.getTable(record.table.database.get, record.table.table)
    catalog.alterTable(entry.copy(storage = entry.storage.copy(
        locationUri = Some(place.root.toUri))))
    catalog.refreshTable(record.table.copy(catalog = None))
  }
}

object TableLocationSwitch {

  /**
   * A table's location, read from the catalog rather than from a cache; None if there is no such
   * table.
   */
  def location(session: shim.SparkSession, table: TableIdentifier): Option[Path] = {
    val catalog = session.sessionState.catalog.externalCatalog
    val database = table.database.get
    if (!catalog.databaseExists(database) || !catalog.tableExists(database, table.table)) None
    else catalog.getTable(database, table.table).storage.locationUri.map { uri =>
      val path = new Path(uri)
      path.getFileSystem(session.sessionState.newHadoopConf()).makeQualified(path)
    }
  }

  /**
   * The completed switch of a journal's last run. None if the run did not switch the table to
   * another folder, or if the new folder does not record that it was filled from the old one.
   */
  def done(session: shim.SparkSession, state: JournalState): Option[TableLocationSwitch] =
    if (!state.done || !state.outcome.exists(_.commit)) None
    else state.switch.map(new TableLocationSwitch(session, state.folder, state.run, _)).filter(
      switch =>
        SiblingFolder.origin(session.sessionState.newHadoopConf(), switch.to)
          .contains(state.folder))
}
