package io.pyzorder.commands

import java.util.concurrent.TimeUnit

import scala.util.control.NonFatal

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{LongType, StringType}

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.commands.action.{ResultColumns, TableAction, Vacuum}
import io.pyzorder.common.{StoreFailures, ZOrderConf, ZOrderErrors}
import io.pyzorder.publish.Writer
import io.pyzorder.publish.relocate.PreviousLocations

/**
 * VACUUM: deletes replaced files whose retention period has expired, and files left behind by dead
 * writers. Returns the deleted files.
 *
 * @param retainHours how many hours to keep replaced files; None to use the retention setting
 * @param dryRun      if true, returns the files that would be deleted, without taking the lock or
 *                    deleting them
 */
case class VacuumCommand(table: ResolvedTable, retainHours: Option[Int], dryRun: Boolean)
    extends LeafRunnableCommand {

  override val output: Seq[Attribute] = ResultColumns.none
    .always("path", StringType, "A file that was deleted or, with DRY RUN, would be deleted")
    .always("size", LongType, "Size of the file in bytes")
    .attributes

  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = sparkSession.asInstanceOf[shim.SparkSession]
    TableAction.execute(session, table)(new VacuumAction(session, _, retainHours, dryRun))
      .map(file => Row(file.getPath.toString, file.getLen))
  }
}

private final class VacuumAction(
    session: shim.SparkSession,
    table: ResolvedTable,
    retainHours: Option[Int],
    dryRun: Boolean)
    extends TableAction[Seq[FileStatus]](session, table, "VACUUM") {

  private val conf = session.sessionState.conf
  private val folder = table.folder(session)
  private val hours =
    retainHours.getOrElse(ZOrderConf.vacuumRetention.get(conf, table.properties))
  private var deletedForRoom = Seq.empty[FileStatus]

  override def validate(): Option[Seq[FileStatus]] = {
    if (hours < 1 && ZOrderConf.vacuumCheck.get(conf)) throw ZOrderErrors.retentionTooShort(hours)
    val fs = folder.zorder.getFileSystem(session.sessionState.newHadoopConf())
    if (!fs.exists(folder.zorder)) Some(Nil)
    else if (dryRun) Some(Vacuum.find(session, table, hours))
    else None
  }

  /**
   * Takes the lock, which requires writing a few records. If that fails because the disk is full,
   * deletes the files that can be deleted without the lock, and tries again.
   */
  override def begin(): Writer =
    try super.begin()
    catch {
      case NonFatal(failure) if StoreFailures.isFull(failure) =>
        val garbage = Vacuum.garbage(session, table)
        deletedForRoom = garbage.replaced(TimeUnit.HOURS.toMillis(hours.toLong))
        if (deletedForRoom.isEmpty) throw failure
        garbage.deleteFiles(deletedForRoom, _ => ())
        super.begin()
    }

  override def run(writer: Writer): Seq[FileStatus] =
    deletedForRoom ++ Vacuum.delete(session, table, writer, hours)

  override def end(): Unit =
    if (new PreviousLocations(session, folder, table.identifier).movedTable) super.end()
}
