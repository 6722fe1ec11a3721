package io.pyzorder.publish.relocate

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.{ZOrderErrors, ZOrderException}
import io.pyzorder.publish.journal.{Journal, Records, RetireRecord, RunFiles, SummaryFiles}
import io.pyzorder.storage.{FileRef, FileSystems, SiblingFolder, TableFolder}

/**
 * The folders that a table's location was switched away from and that VACUUM has not deleted, each
 * known by the last run of its own journal. For the holder of the lock of the table's folder.
 *
 * @param folder the table's folder now
 */
private[relocate] final class PreviousTableLocations(
    session: shim.SparkSession,
    folder: TableFolder) {

  private val hadoopConf = session.sessionState.newHadoopConf()

  /** With the time, by the store's clock, when the table was switched away; the first one first. */
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

  /** Where another table of the database lies by now: what is there is not this table's. */
  private lazy val taken: Set[Path] =
    switches.map(_._1).groupBy(_.record.table.database.get).flatMap { case (database, those) =>
      CoLocatedTables.of(session, database, None, those.map(_.from.root).toSet).map(_._1)
    }.toSet

  def isEmpty: Boolean = switches.isEmpty

  private def since(switch: TableLocationSwitch): Long =
    Journal.ended(hadoopConf, switch.from).values.max

  /**
   * What the OPTIMIZE that brought the table here replaced by what, for who undoes it: `retire` are
   * files of `home`, `add` files of `folder`. Throws ZORDER_CANNOT_RESTORE when there is none, when
   * others have replaced what it wrote, or when what it replaced is gone.
   */
  def lastOptimize: LastSwitch.OfTable = {
    val switch = switches.lastOption.map(_._1)
      .getOrElse(throw ZOrderErrors.nothingToRestore(folder.root.toString))
    if (operationOf(switch).contains(Records.Restore)) {
      throw ZOrderErrors.oneRestoreAtMost(folder.root.toString)
    }
    val filled = Journal.runs(hadoopConf, folder).minBy(_.run)
    val added = filled.retire.fold(Seq.empty[FileRef])(_.add)
      .map(file => filled.placed.find(_.path == file.path).getOrElse(file))
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

  /**
   * Copies what was written into these folders, by INSERTs that were planned before a switch, into
   * the table's folder. Throws overwrittenBehind where one was overwritten instead.
   */
  def carry(): Unit = {
    (folder +: switches.map(_._1.from)).filter(one => SiblingFolder.isOne(one.root.getName))
      .flatMap(SiblingFolder.origin(hadoopConf, _)).filter(isAnew).foreach(refuse)
    val ours = switches.map(_._1).filterNot(switch => taken(switch.from.root))
    ours.filter(_.late.nonEmpty).foreach { switch =>
      if (switch.incomplete) refuse(switch.from)
      switch.carry(folder)
    }
  }

  /** An overwrite that deletes the folder takes the journal along. */
  private def isAnew(left: TableFolder): Boolean =
    !Journal.read(hadoopConf, left).exists &&
      SiblingFolder.dataFiles(hadoopConf, left.root).nonEmpty

  private def refuse(overwritten: TableFolder): Unit =
    throw ZOrderErrors.overwrittenBehind(overwritten.root.toString, folder.root.toString)

  /**
   * The table's files in the folders that are kept for long enough, and ours. A folder into which
   * others have written rows is left as it is, and so are those that came after it: they tell where
   * these rows belong.
   *
   * @param kept milliseconds since a switch for which the folder is kept
   * @param at   milliseconds since the epoch, by the store's clock
   */
  def garbage(kept: Long, at: Long): Seq[FileStatus] =
    expired(kept, at).flatMap(switch => switch.ownFiles ++ switch.ownRecords)

  /**
   * Deletes them, the records last: a killed one goes on where it was. What else lies in a folder
   * stays, and then the folder, too.
   *
   * @param deleted told after each data file of a folder how many there were so far
   */
  def delete(kept: Long, at: Long, deleted: Int => Unit): Unit =
    expired(kept, at).foreach { switch =>
      val root = switch.from.root
      val fs = root.getFileSystem(hadoopConf)
      switch.ownFiles.zipWithIndex.foreach { case (file, i) =>
        fs.delete(file.getPath, false)
        deleted(i + 1)
      }
      // From here on another table may come to lie where this folder was.
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
