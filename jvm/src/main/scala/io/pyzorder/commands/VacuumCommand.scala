package io.pyzorder.commands

import java.util.concurrent.TimeUnit

import scala.util.control.NonFatal

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{LongType, StringType}
import org.slf4j.LoggerFactory

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.common.{StoreFailures, ZOrderConf, ZOrderErrors}
import io.pyzorder.index.store.IndexStore
import io.pyzorder.layout.select.PartitionListing
import io.pyzorder.publish.{ExpiredFiles, Writer}
import io.pyzorder.publish.journal.Journal
import io.pyzorder.publish.relocate.{PreviousLocations, PreviousPartitionLocations}
import io.pyzorder.storage.{FailPoints, TableFolder}

/**
 * VACUUM: deletes what OPTIMIZE runs replaced longer ago than it is kept, and what dead writers
 * left. Returns the files.
 *
 * @param retainHours None: the setting
 * @param dryRun      only tell them; takes no lock
 */
case class VacuumCommand(table: ResolvedTable, retainHours: Option[Int], dryRun: Boolean)
    extends LeafRunnableCommand {

  override val output: Seq[Attribute] = ResultColumns.none
    .always("path", StringType, "A file that was deleted or, with DRY RUN, would be")
    .always("size", LongType, "Its bytes")
    .attributes

  override def run(sparkSession: SparkSession): Seq[Row] =
    StoreFailures.told(table.root) {
      val session = sparkSession.asInstanceOf[shim.SparkSession]
      SwitchingTables.following(session, table)(vacuum(session, _))
    }

  private def vacuum(session: shim.SparkSession, table: ResolvedTable): Seq[Row] = {
    val conf = session.sessionState.conf
    val hours = retainHours.getOrElse(ZOrderConf.vacuumRetention.get(conf, table.properties))
    if (hours < 1 && ZOrderConf.vacuumCheck.get(conf)) throw ZOrderErrors.retentionTooShort(hours)
    val hadoopConf = session.sessionState.newHadoopConf()
    val folder = table.folder(session)
    val found =
      if (!folder.zorder.getFileSystem(hadoopConf).exists(folder.zorder)) Nil
      else if (dryRun) {
        val journal = Journal.read(hadoopConf, folder)
        val (kept, now) = (TimeUnit.HOURS.toMillis(hours.toLong), System.currentTimeMillis())
        Vacuum.garbage(session, table)
          .find(kept, now, if (journal.unfinished) Some(journal.run) else None) ++
          new PreviousLocations(session, folder).garbage(kept, now) ++
          new PreviousPartitionLocations(session, folder, table.identifier).garbage(kept, now)
      } else {
        val (room, writer) = begin(session, table, hours)
        try {
          SwitchingTables.carry(session, table)
          room ++ Vacuum.delete(session, table, writer, hours)
        } finally {
          writer.abort()
          if (!new PreviousLocations(session, folder).isEmpty) table.refresh(session)
        }
      }
    found.map(file => Row(file.getPath.toString, file.getLen))
  }

  /**
   * Takes the lock, which takes room for a few records. Where a full disk has none, some is made
   * first, of files that need no lock to go.
   *
   * @return what was deleted to make room
   */
  private def begin(
      session: shim.SparkSession,
      table: ResolvedTable,
      hours: Int): (Seq[FileStatus], Writer) =
    try {
      (Nil, Writer.begin(session, table.folder(session), "VACUUM"))
    } catch {
      case NonFatal(failure) if StoreFailures.isFull(failure) =>
        val garbage = Vacuum.garbage(session, table)
        val files = garbage.replaced(TimeUnit.HOURS.toMillis(hours.toLong))
        if (files.isEmpty) throw failure
        garbage.deleteFiles(files, _ => ())
        (files, Writer.begin(session, table.folder(session), "VACUUM"))
    }
}

/** What VACUUM shares with OPTIMIZE, which deletes what has expired before it begins. */
private[commands] object Vacuum {

  private val log = LoggerFactory.getLogger(getClass)

  /** Deletes, with the lock held, what has expired by the table's retention, if it can. */
  def expired(session: shim.SparkSession, table: ResolvedTable, writer: Writer): Unit = {
    val conf = session.sessionState.conf
    val least = if (ZOrderConf.vacuumCheck.get(conf)) 1 else 0
    val kept = ZOrderConf.vacuumRetention.get(conf, table.properties)
    try delete(session, table, writer, math.max(least, kept))
    catch {
      case NonFatal(failure) =>
        log.warn(s"Files that OPTIMIZE replaced in ${table.root} have expired and could not be " +
          s"deleted; VACUUM tries again: ${failure.getMessage}")
    }
  }

  def garbage(session: shim.SparkSession, table: ResolvedTable): ExpiredFiles = {
    val folder = table.folder(session)
    val outside = PartitionListing.list(table.relation.location, folder, None)
      .map(_.folder).filter(TableFolder.isWhole).map(folder.resolve)
    new ExpiredFiles(session.sessionState.newHadoopConf(), folder, outside)
  }

  /** Deletes, with the lock held, and returns what is older than so many hours. */
  def delete(
      session: shim.SparkSession,
      table: ResolvedTable,
      writer: Writer,
      hours: Int): Seq[FileStatus] = {
    val found = garbage(session, table)
    val kept = TimeUnit.HOURS.toMillis(hours.toLong)
    val files = found.find(kept, writer.began, Some(writer.run))
    val behind = new PreviousLocations(session, writer.folder)
    val partitions =
      new PreviousPartitionLocations(session, table.folder(session), table.identifier)
    val left = behind.garbage(kept, writer.began) ++ partitions.garbage(kept, writer.began)
    def reach(point: String): Unit = FailPoints.reach(session.sessionState.conf, point)
    if (files.nonEmpty || left.nonEmpty) reach("vacuum-found")
    found.delete(files, n => if (n == 1) reach("mid-vacuum"))
    behind.delete(kept, writer.began, n => if (n == 1) reach("mid-vacuum"))
    partitions.delete(kept, writer.began, n => if (n == 1) reach("mid-vacuum"))
    IndexStore.deleteReplaced(
      session.sessionState.newHadoopConf(), writer.folder, writer.began - kept)
    files ++ left
  }
}
