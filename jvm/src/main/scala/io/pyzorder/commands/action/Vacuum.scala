package io.pyzorder.commands.action

import java.util.concurrent.TimeUnit

import scala.util.control.NonFatal

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.execution.datasources.CatalogFileIndex
import org.apache.spark.sql.pyzorder.{shim, CatalogAccess}
import org.slf4j.LoggerFactory

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.common.ZOrderConf
import io.pyzorder.index.store.IndexPublisher
import io.pyzorder.publish.{ExpiredFiles, Writer}
import io.pyzorder.publish.journal.Journal
import io.pyzorder.publish.relocate.PreviousLocations
import io.pyzorder.storage.{FailPoints, TableFolder}

/** Deletes expired files, both in VACUUM and at the beginning of an OPTIMIZE. */
private[commands] object Vacuum {

  private val log = LoggerFactory.getLogger(getClass)

  /**
   * Deletes the files whose retention period has expired. Failures are logged, not thrown. Requires
   * the lock.
   */
  def expired(session: shim.SparkSession, table: ResolvedTable, writer: Writer): Unit = {
    val conf = session.sessionState.conf
    val least = if (ZOrderConf.vacuumCheck.get(conf)) 1 else 0
    val kept = ZOrderConf.vacuumRetention.get(conf, table.properties)
    try delete(session, table, writer, math.max(least, kept))
    catch {
      case NonFatal(failure) =>
        log.warn(s"Expired files of ${table.root} could not be deleted. The next OPTIMIZE or " +
          s"VACUUM will try again: ${failure.getMessage}")
    }
  }

  def garbage(session: shim.SparkSession, table: ResolvedTable): ExpiredFiles = {
    val folder = table.folder(session)
    val outside = table.relation.location match {
      case catalog: CatalogFileIndex =>
        CatalogAccess.partitions(session, catalog, Seq(Nil)).partitions.map(_.path)
          .filterNot(TableFolder.isAtOrBelow(_, folder.root)).distinct
      case _ => Nil
    }
    new ExpiredFiles(session.sessionState.newHadoopConf(), folder, outside)
  }

  /** The files that `delete` would return. Requires no lock. */
  def find(session: shim.SparkSession, table: ResolvedTable, hours: Int): Seq[FileStatus] = {
    val journal = Journal.read(session.sessionState.newHadoopConf(), table.folder(session))
    val (kept, now) = (TimeUnit.HOURS.toMillis(hours.toLong), System.currentTimeMillis())
    garbage(session, table)
      .find(kept, now, if (journal.unfinished) Some(journal.run) else None) ++
      previous(session, table).garbage(kept, now)
  }

  /**
   * Deletes and returns the files that were replaced, or left behind by dead writers, at least
   * `hours` hours ago. Also deletes index snapshots that were replaced at least that long ago.
   * Requires the lock.
   */
  def delete(
      session: shim.SparkSession,
      table: ResolvedTable,
      writer: Writer,
      hours: Int): Seq[FileStatus] = {
    val found = garbage(session, table)
    val kept = TimeUnit.HOURS.toMillis(hours.toLong)
    val files = found.find(kept, writer.began, Some(writer.run))
    val locations = previous(session, table)
    val left = locations.garbage(kept, writer.began)
    def reach(point: String): Unit = FailPoints.reach(session.sessionState.conf, point)
    if (files.nonEmpty || left.nonEmpty) reach("vacuum-found")
    found.delete(files, n => if (n == 1) reach("mid-vacuum"))
    locations.delete(kept, writer.began, n => if (n == 1) reach("mid-vacuum"))
    IndexPublisher.deleteReplaced(
      session.sessionState.newHadoopConf(), writer.folder, writer.began - kept)
    files ++ left
  }

  private def previous(session: shim.SparkSession, table: ResolvedTable): PreviousLocations =
    new PreviousLocations(session, table.folder(session), table.identifier)
}
