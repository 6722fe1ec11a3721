package io.pyzorder.commands

import scala.util.control.NonFatal

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.LongType
import org.slf4j.LoggerFactory

import io.pyzorder.catalog.{ResolvedTable, TableFiles}
import io.pyzorder.commands.action.{FileCopies, ResultColumns, SkippingIndex, SwitchingTables}
import io.pyzorder.commands.action.TableAction
import io.pyzorder.common.{ZOrderErrors, ZOrderException}
import io.pyzorder.index.model.IndexedColumn
import io.pyzorder.publish.{Filled, LastOptimize, Writer}
import io.pyzorder.publish.journal.{Journal, LayoutRecord, Records, RetireRecord, SummaryFiles}
import io.pyzorder.publish.relocate.{LastSwitch, PartitionLocationSwitch, PreviousLocations}
import io.pyzorder.storage.{FileRef, FileSystems, Incarnation}

/**
 * RESTORE … TO BEFORE OPTIMIZE: replaces the files written by the last OPTIMIZE with the files that
 * it had replaced. Files that were added after that OPTIMIZE are kept. Like an OPTIMIZE,
 * a RESTORE is recorded in the journal as a run. A RESTORE publishes copies of the replaced files.
 * If it is killed at any point, the replaced files and the files that the OPTIMIZE wrote are still
 * intact.
 */
case class RestoreCommand(table: ResolvedTable) extends LeafRunnableCommand {

  override val output: Seq[Attribute] = ResultColumns.none
    .always("num_restored_files", LongType, "Number of files that were restored")
    .always("restored_files_size", LongType, "Total size of the restored files in bytes")
    .always("num_removed_files", LongType,
      "Number of removed files, which the last OPTIMIZE had written")
    .always("removed_files_size", LongType, "Total size of the removed files in bytes")
    .attributes

  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = sparkSession.asInstanceOf[shim.SparkSession]
    Seq(TableAction.execute(session, table)(new RestoreAction(session, _)))
  }
}

private final class RestoreAction(session: shim.SparkSession, table: ResolvedTable)
    extends TableAction[Row](session, table, Records.Restore) {

  private val hadoopConf = session.sessionState.newHadoopConf()
  private val folder = table.folder(session)

  /**
   * If possible, throws before the lock is taken, because taking the lock records a run. `run`
   * checks everything again.
   */
  override def validate(): Option[Row] = {
    val fs = folder.root.getFileSystem(hadoopConf)
    if (!fs.exists(folder.zorder)) throw ZOrderErrors.nothingToRestore(folder.root.toString)
    val before = Journal.read(hadoopConf, folder)
    // This early check is left out in two cases. If there is an unfinished run, another writer is
    // active, or the run must be recovered first. If the last run has switched the table to another
    // folder, the statement must be run on that folder.
    if (!before.unfinished && before.switch.isEmpty) {
      try {
        previous.check()
        prepare(Incarnation.read(hadoopConf, folder))
      } catch {
        case refused: ZOrderException if Journal.read(hadoopConf, folder).token == before.token =>
          throw refused
        case NonFatal(_) => () // another writer has interfered, or the store has failed
      }
    }
    None
  }

  override def run(writer: Writer): Row = prepare(Some(writer.incarnation))(writer)

  private def previous = new PreviousLocations(session, folder, table.identifier)

  /**
   * Returns a function that restores the files. Changes nothing itself. Throws if there is nothing
   * to restore or if a restore is impossible.
   */
  private def prepare(incarnation: Option[String]): Writer => Row =
    previous.lastSwitch(within = LastOptimize.number(hadoopConf, folder, incarnation)) match {
      case Some(last: LastSwitch.OfPartitions) => switchBack(last)
      case Some(last: LastSwitch.OfTable) => switchBack(last)
      case None => putBack(LastOptimize.find(hadoopConf, folder, incarnation))
    }

  /** Restores files within the table's folder. */
  private def putBack(last: LastOptimize): Writer => Row = {
    checkPartitions(last.record)
    SummaryFiles.without(last.record.retire).map(_.path)
      .find { path =>
        val file = folder.resolve(path)
        FileSystems.exists(file.getFileSystem(hadoopConf), file)
      }
      .foreach(path => throw ZOrderErrors.restoreNameTaken(folder.root.toString, path))
    val places = last.record.retire.map(file =>
      file.path -> folder.retiredPath(last.run, file.path))
    writer => {
      writer.checkSpace(last.record.retire.map(_.size).sum)
      val copies = FileCopies.stage(session, writer, places, Records.Restore)
      writer.layout = LayoutRecord.last(hadoopConf, folder, before = last.run)
      writer.publish(last.record.add, copies, Nil, identity)
      reindex()
      resultRow(SummaryFiles.without(last.record.retire), last.record.add)
    }
  }

  /**
   * Throws if a folder with files to restore or to remove does not belong to any current partition.
   * No query would read files restored to a dropped partition, and another user may have taken over
   * a partition's previous location.
   */
  private def checkPartitions(record: RetireRecord): Unit =
    if (table.partitionSchema.nonEmpty && table.catalogTable.exists(_.tracksPartitionsInCatalog)) {
      val known = PartitionLocationSwitch.partitionsOf(session, table.identifier.get).values
        .map(folder.relativize).toSet
      val folders = SummaryFiles.without(record.retire ++ record.add).map(_.folder).distinct
      folders.find(!orAbove(_).exists(known)).foreach { gone =>
        throw ZOrderErrors.restorePartitionGone(folder.root.toString, gone)
      }
    }

  /**
   * Throws if a file that was added after the OPTIMIZE has the name of a file to be restored. This
   * can happen because some writers reuse simple names such as `part-0.parquet`.
   */
  private def checkNames(names: Seq[String]): Unit =
    names.diff(names.distinct).headOption.foreach(name =>
      throw ZOrderErrors.restoreNameTaken(folder.root.toString, name))

  /**
   * The folder and its ancestors. A partition includes all folders below its location. The folder
   * therefore belongs to a partition if any of these paths is the partition's location.
   */
  private def orAbove(folder: String): Iterator[String] =
    Iterator(folder) ++ folder.indices.reverseIterator.filter(folder(_) == '/').map(folder.take)

  /**
   * Switches the table to a new folder, which contains copies of the replaced files and of the
   * files that were added after the OPTIMIZE.
   */
  private def switchBack(last: LastSwitch.OfTable): Writer => Row = {
    SwitchingTables.check(session, table)
    val now = TableFiles.list(session, table)
    SwitchingTables.checkFlat(session, table, now)
    val added = last.add.map(_.path).toSet
    val summaries = SummaryFiles.in(hadoopConf, last.home, last.retire.map(_.folder))
    val places = SwitchingTables.placesOf(last.home, last.retire ++ summaries) ++
      SwitchingTables.placesOf(folder, now.filterNot(file => added(file.path)))
    checkNames(places.map(_._1))
    writer => {
      val to = writer.switchLocation(table.identifier.get, now) { to =>
        val filler = Writer.begin(session, to.root, Records.Restore)
        Writer.use(filler) {
          filler.checkSpace(last.retire.map(_.size).sum)
          val copies = FileCopies.stage(session, filler, places, Records.Restore)
          filler.layout = LayoutRecord.last(hadoopConf, last.home)
          filler.publish(Nil, copies, Nil, identity,
            rowsOf = places.collect { case (name, place) if !SummaryFiles.isOne(name) => place })
        }
      }
      val columns = SkippingIndex.latest(session, table).map(_.columns)
      val restored = SwitchingTables.current(session, table)
      columns.filter(_ => restored.root == to.root).foreach(reindex(restored, _))
      resultRow(last.retire, last.add)
    }
  }

  /**
   * Switches partitions to new folders, which contain copies of the replaced files and of the files
   * that were added after the OPTIMIZE.
   */
  private def switchBack(last: LastSwitch.OfPartitions): Writer => Row = {
    SwitchingTables.check(session, table)
    val places = last.switch.moves.map(move => folder.relativize(move.to) -> move).toMap
    val now = TableFiles.list(session, table).filter(file => places.contains(file.folder))
    val added = now.filterNot(last.add.toSet)
    checkNames(added.map(_.path) ++
      places.toSeq.flatMap { case (place, move) =>
        move.read.map(file => if (place.isEmpty) file.name else s"$place/${file.name}")
      })
    val moves = SwitchingTables.moves(session, table, places.keys.toSeq)
    writer => {
      writer.layout = LayoutRecord.last(hadoopConf, folder, before = last.switch.run)
      writer.switchPartitions(table.identifier.get, moves, now) { folders =>
        writer.checkSpace(last.switch.record.read.map(_.size).sum)
        val restored = places.toSeq.flatMap { case (place, move) =>
          move.read.map(file => s"${folders(place)}/${file.name}" -> folder.resolve(file.path))
        }
        val kept =
          added.map(file => s"${folders(file.folder)}/${file.name}" -> folder.resolve(file.path))
        Filled(
          FileCopies.stage(session, writer, restored ++ kept, Records.Restore), Nil, identity)
      }
      reindex()
      resultRow(last.switch.record.read, last.add)
    }
  }

  private def resultRow(restored: Seq[FileRef], removed: Seq[FileRef]): Row = Row(
    restored.length.toLong, restored.map(_.size).sum,
    removed.length.toLong, removed.map(_.size).sum)

  /**
   * Indexes the restored files if the table has an index. If indexing fails, the command still
   * succeeds, because queries always read files that have no index entry.
   */
  private def reindex(): Unit =
    SkippingIndex.latest(session, table).foreach(ref => reindex(table, ref.columns))

  private def reindex(table: ResolvedTable, columns: Seq[IndexedColumn]): Unit =
    try SkippingIndex.update(session, table, columns)
    catch {
      case NonFatal(failure) =>
        RestoreAction.log.warn(
          s"The files of ${table.root} were restored, but remain unindexed until the next " +
            s"REFRESH SKIPPING INDEX: ${failure.getMessage}")
    }
}

private object RestoreAction {
  private val log = LoggerFactory.getLogger(getClass)
}
