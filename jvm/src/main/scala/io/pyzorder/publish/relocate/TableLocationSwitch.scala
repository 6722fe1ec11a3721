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
 * A run that publishes by one change in the catalog: the folder `to` is filled beside the table's
 * folder `from`, then the table's location is switched to it. No file of `from` is touched, so that
 * every reader, of any engine, sees all of the old folder or all of the new one:
 *
 *  - before the switch the table is `from`, which is what it was; that `to` is there, or half full,
 *    is seen by nobody;
 *  - the switch is one call of the catalog, which takes place or does not;
 *  - after it the table is `to`, which held every row before COMMIT; a query that was planned
 *    before reads `from`, which stays until VACUUM.
 *
 * Each folder has a `_zorder` of its own. A reader that found a folder in the catalog finds there
 * the index and the journal of just the files it lists: entries of one folder are never held
 * against files of the other.
 *
 * Before COMMIT the run is undone: `to` is deleted. After it the run is completed, by whoever holds
 * the lock: to switch to the same folder twice is to switch once, so that a call of a writer that
 * was declared dead does no harm when it arrives late, unless the table went on from `to` by then.
 *
 * A catalog has no compare-and-swap. An INSERT that was planned before the switch and commits after
 * it writes into `from`: `carry` brings its files over, at once after the switch or with the next
 * writing command. If `from` was overwritten around the moment of the switch, it is taken back.
 *
 * @param from   the table's folder when the run began; not partitioned
 * @param run    its number in the journal of `from`
 * @param record what it says of itself there
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
    hadoopConf, from, from.root, record.read, new Path(from.zorder, s"_carried/_$run"),
    record.to.takeRight(8))
  private val files = new RunFiles(
    hadoopConf, from, run, RetireRecord(record.incarnation, record.read, Nil, Nil))

  /** The folder that the table is switched to. */
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

  /** Open to those whom `from` is open to; it says where it comes from. */
  override def make(): Unit = {
    if (!fs.mkdirs(to.root)) throw new IOException(s"cannot create ${to.root}")
    MetadataFiles.share(hadoopConf, to.root, from.root)
    FillingMark.put(hadoopConf, to.root, Records.write(record))
    val origin = SiblingFolder.originFile(to)
    CreateIfAbsent.of(hadoopConf, origin).create(origin, from.root.getName.getBytes(UTF_8))
  }

  override def carry(): Unit = carry(to)

  /** Whether `to` is being filled by this very record, and not yet known to be the table. */
  private def isMine: Boolean = FillingMark.isIn(hadoopConf, to.root, Records.write(record))

  /** Nobody has been told of `to`, and nobody will be. */
  override def undo(): Unit =
    if (isMine && !location.contains(to.root)) fs.delete(to.root, true)

  override def marked: Set[Path] = Set.empty

  override def strange: Option[String] = None

  /** Without the mark there is nothing to do: it was done, or the record is none of a run. */
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
            "this process gave no sign of life for longer than its lease")
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

  /** After the switch; `conflict`: what others did to `from`. */
  private def settle(conflict: Option[String]): Seq[String] = {
    if (conflict.isEmpty) carry(to)
    conflict.toSeq
  }

  /** What others did to the files that were read; None: nothing. */
  private def changed: Option[String] =
    try {
      checkFiles()
      None
    } catch {
      case conflict: ZOrderException => Option(conflict.getMessageParameters.get("what"))
          .orElse(Some(conflict.sentence))
    }

  /** Files in `from` that came after it was read, and were not carried into `to` yet. */
  def late: Seq[FileStatus] = left.late

  /** Whether a file that was read is not in `from` any more. */
  def incomplete: Boolean = left.incomplete

  /**
   * Copies the files of `late` into the folder that is the table now, and notes it in `from`.
   *
   * @param table `to`, or what it was switched to since
   */
  def carry(table: TableFolder): Unit = left.carry(table.root)

  /** The files of the table in `from`, which others' files may lie beside; for VACUUM. */
  def ownFiles: Seq[FileStatus] = left.ownFiles

  /** What else is ours in `from`: the files below its `_zorder`. */
  def ownRecords: Seq[FileStatus] = {
    def below(folder: Path): Seq[FileStatus] = FileSystems.list(fs, folder).flatMap(entry =>
      if (entry.isDirectory) below(entry.getPath) else Seq(entry))
    below(from.zorder)
  }

  private def visible: Seq[FileStatus] = SiblingFolder.dataFiles(hadoopConf, to.root)

  private def tableName: String = record.table.copy(catalog = None).quotedString

  /** Where the catalog says that the table lies; None: it knows no such table. */
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

  /** Where the catalog says that a table lies, asked anew; None: it knows no such table. */
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
   * The switch that a journal's last run has done; None: the table was not switched away, or not
   * by the word of the folder that it was switched to.
   */
  def done(session: shim.SparkSession, state: JournalState): Option[TableLocationSwitch] =
    if (!state.done || !state.outcome.exists(_.commit)) None
    else state.switch.map(new TableLocationSwitch(session, state.folder, state.run, _)).filter(
      switch =>
        SiblingFolder.origin(session.sessionState.newHadoopConf(), switch.to)
          .contains(state.folder))
}
