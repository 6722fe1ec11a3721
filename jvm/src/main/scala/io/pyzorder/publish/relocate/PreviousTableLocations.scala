package io.pyzorder.publish.relocate

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.{ZOrderErrors, ZOrderException}
import io.pyzorder.publish.journal.{Journal, Records, RetireRecord, RunFiles, SummaryFiles}
import io.pyzorder.storage.{FileSystems, SiblingFolder, TableFolder}

/**
 * The previous folders of a table, except those that VACUUM has deleted. The last run in each
 * folder's journal is the run that switched the table to the next folder.
 *
 * @param folder the table's current folder
 */
private[relocate] final class PreviousTableLocations(
    session: shim.SparkSession,
    folder: TableFolder) {

  private val hadoopConf = session.sessionState.newHadoopConf()

  /** The switches, oldest first, each with its time according to the store's clock. */
  private lazy val switches: Seq[(TableLocationSwitch, Long)] = {
    def before(now: TableFolder): Option[TableLocationSwitch] =
      if (!SiblingFolder.isOne(now.root.getName)) None
      else SiblingFolder.origin(hadoopConf, now)
        .flatMap(origin => TableLocationSwitch.done(session, Journal.read(hadoopConf, origin)))
        .filter(_.to == now)
    def chain(now: TableFolder, seen: Set[TableFolder]): Seq[TableLocationSwitch] =
      before(now).filterNot(switch => seen(switch.from)).toSeq
        .flatMap(switch => chain(switch.from, seen + switch.from) :+ switch)
    chain(folder, Set(folder)).map(switch => switch -> since(switch))
  }

  /** Previous folders that another table in the same database now uses. */
  private lazy val taken: Set[Path] =
    switches.map(_._1).groupBy(_.record.table.database.get).flatMap { case (database, those) =>
      CoLocatedTables.of(session, database, None, those.map(_.from.root).toSet).map(_._1)
    }.toSet

  def isEmpty: Boolean = switches.isEmpty

  private def since(switch: TableLocationSwitch): Long =
    Journal.ended(hadoopConf, switch.from).values.max

  /**
   * The OPTIMIZE that switched the table to its current folder. A RESTORE would undo this OPTIMIZE.
   * Throws ZORDER_CANNOT_RESTORE if there is no such OPTIMIZE, if other writers have replaced the
   * files that the OPTIMIZE wrote, or if the files that the OPTIMIZE replaced are gone.
   */
  def lastOptimize: LastSwitch.OfTable = {
    val switch = switches.lastOption.map(_._1)
      .getOrElse(throw ZOrderErrors.nothingToRestore(folder.root.toString))
    if (operationOf(switch).contains(Records.Restore)) {
      throw ZOrderErrors.oneRestoreAtMost(folder.root.toString)
    }
    // Without the records of the run that filled the folder, the run's files cannot be
    // distinguished from files that were added later. A RESTORE would then keep both the run's
    // files and the files that they replaced.
    val (filled, said) = Journal.runs(hadoopConf, folder).sortBy(_.run).headOption
      .flatMap(run => run.retire.map(run -> _))
      .getOrElse(throw ZOrderErrors.restoreNewFilesChanged(folder.root.toString))
    val added = said.add.map(file => filled.placed.find(_.path == file.path).getOrElse(file))
    if (switch.incomplete) {
      throw ZOrderErrors.restoreOldFilesChanged(
        folder.root.toString, switch.from.root.toString)
    }
    val there = new RunFiles(
      hadoopConf, folder, filled.run, RetireRecord(switch.record.incarnation, added, Nil, Nil))
    try there.checkInputs()
    catch {
      case _: ZOrderException => throw ZOrderErrors.restoreNewFilesChanged(folder.root.toString)
    }
    LastSwitch.OfTable(switch.from, switch.record.read, added)
  }

  private def operationOf(switch: TableLocationSwitch): Option[String] =
    Journal.read(hadoopConf, switch.from).prepare.map(_.operation)

  /** Throws overwrittenBehind if a previous folder was overwritten. */
  def check(): Unit = checked(_ => ())

  /**
   * Copies files to the table's current folder if an INSERT that was planned before a switch has
   * added them to a previous folder. Throws overwrittenBehind if a previous folder was overwritten.
   */
  def carry(): Unit = checked(_.carry(folder))

  /** Calls `act` for each previous folder that contains added files not yet copied. */
  private def checked(act: TableLocationSwitch => Unit): Unit = {
    (folder +: switches.map(_._1.from)).filter(one => SiblingFolder.isOne(one.root.getName))
      .flatMap(SiblingFolder.origin(hadoopConf, _)).filter(isAnew).foreach(refuse)
    val ours = switches.map(_._1).filterNot(switch => taken(switch.from.root))
    ours.filter(_.late.nonEmpty).foreach { switch =>
      if (switch.incomplete) refuse(switch.from)
      act(switch)
    }
  }

  /**
   * Whether a folder was overwritten. An overwrite that deletes the folder also deletes its
   * journal.
   */
  private def isAnew(left: TableFolder): Boolean =
    !Journal.read(hadoopConf, left).exists &&
      SiblingFolder.dataFiles(hadoopConf, left.root).nonEmpty

  private def refuse(overwritten: TableFolder): Unit =
    throw ZOrderErrors.overwrittenBehind(overwritten.root.toString, folder.root.toString)

  /**
   * The table's files and pyzorder's own files in those previous folders whose retention period has
   * ended. Skips a folder that another table now uses or to which other writers have added files
   * that have not been copied yet. Also skips the folders of all later switches, because their
   * records are needed to find the table to which the added files belong.
   *
   * @param kept how long a folder is kept after a switch, in milliseconds
   * @param at   the current time in milliseconds since the epoch, according to the store's clock
   */
  def garbage(kept: Long, at: Long): Seq[FileStatus] =
    expired(kept, at).flatMap(switch => switch.ownFiles ++ switch.ownRecords)

  /**
   * Deletes the files in `garbage`. In each folder, the records are deleted only after all data
   * files, so the next call can continue if the process is killed in between. `_SUCCESS`, the
   * summary files and the empty folder are deleted after the records. If a folder contains other
   * files, they and the folder are kept.
   *
   * @param deleted called after each data file with the number of data files deleted from that
   *                folder so far
   */
  def delete(kept: Long, at: Long, deleted: Int => Unit): Unit =
    expired(kept, at).foreach { switch =>
      val root = switch.from.root
      val fs = root.getFileSystem(hadoopConf)
      switch.ownFiles.zipWithIndex.foreach { case (file, i) =>
        fs.delete(file.getPath, false)
        deleted(i + 1)
      }
      // Once these records are deleted, another table may be created in this folder.
      fs.delete(SiblingFolder.originFile(switch.to), false)
      fs.delete(switch.from.zorder, true)
      fs.delete(new Path(root, "_SUCCESS"), false)
      SummaryFiles.delete(hadoopConf, root)
      if (FileSystems.list(fs, root).isEmpty) fs.delete(root, true)
    }

  private def expired(kept: Long, at: Long): Seq[TableLocationSwitch] =
    switches.takeWhile { case (switch, since) =>
      at - since >= kept && !taken(switch.from.root) && switch.late.isEmpty
    }.map(_._1)
}
