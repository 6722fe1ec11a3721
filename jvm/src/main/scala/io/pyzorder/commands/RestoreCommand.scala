package io.pyzorder.commands

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileUtil, Path}
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.LongType
import org.apache.spark.util.SerializableConfiguration
import org.slf4j.LoggerFactory

import io.pyzorder.{JobDescription, StoreFailures, TaskFunction}
import io.pyzorder.publish._

/**
 * RESTORE … TO BEFORE OPTIMIZE: the files that the last OPTIMIZE replaced come back in place of
 * those it wrote; what others have added since stays. It is a run like any other, whose new files
 * are copies of the retired ones: whenever it is killed, both sets are complete.
 */
case class RestoreCommand(table: ResolvedTable) extends LeafRunnableCommand {

  override val output: Seq[Attribute] = ResultColumns.none
    .always("num_restored_files", LongType, "Files that came back")
    .always("restored_files_size", LongType, "Their bytes")
    .always("num_removed_files", LongType, "Files of the OPTIMIZE that they took the place of")
    .always("removed_files_size", LongType, "Their bytes")
    .attributes

  override def run(sparkSession: SparkSession): Seq[Row] =
    StoreFailures.told(table.root)(restore(sparkSession.asInstanceOf[shim.SparkSession]))

  private def restore(session: shim.SparkSession): Seq[Row] = {
    val writer = Writer.begin(session, table.root, LastOptimize.Restore)
    try {
      val last = LastOptimize.find(session.sessionState.newHadoopConf(), writer)
      writer.checkSpace(last.record.retire.map(_.size).sum)
      writer.publish(last.record.add, copies(session, writer, last), Nil, identity)
      reindex(session)
      Seq(Row(
          last.record.retire.length.toLong, last.record.retire.map(_.size).sum,
          last.record.add.length.toLong, last.record.add.map(_.size).sum))
    } finally {
      writer.abort()
      table.refresh(session)
    }
  }

  private def copies(
      session: shim.SparkSession,
      writer: Writer,
      last: LastOptimize): Seq[StagedFile] = {
    val moves = last.record.retire.map { file =>
      val from = writer.folder.retiredPath(last.run, file.path)
      (file.path, from.toString, writer.stagedPath(file.path).toString)
    }
    val context = session.sparkContext
    val conf =
      context.broadcast(new SerializableConfiguration(session.sessionState.newHadoopConf()))
    def copied = context.parallelize(moves, math.min(moves.length, 10000))
      .map(TaskFunction { (move: (String, String, String)) =>
        val (path, from, to) = (move._1, new Path(move._2), new Path(move._3))
        val hadoopConf = conf.value.value
        val fs = to.getFileSystem(hadoopConf)
        OwnFiles.makeFolder(hadoopConf, to.getParent)
        FileUtil.copy(from.getFileSystem(hadoopConf), from, fs, to, false, true, hadoopConf)
        StagedFile(to, path, fs.getFileStatus(to).getLen, RowCounts.of(hadoopConf, to))
      }).collect().toSeq
    JobDescription.during(
      context, s"RESTORE ${table.root}: copy ${moves.length} files")(copied)
  }

  /**
   * The files that came back get their entries again, if the table has an index. They are back
   * with entries or without: what is not indexed is read.
   */
  private def reindex(session: shim.SparkSession): Unit =
    try SkippingIndex.latest(session, table).foreach(ref =>
        SkippingIndex.update(session, table, ref.columns))
    catch {
      case NonFatal(failure) =>
        RestoreCommand.log.warn(
          s"The files of ${table.root} are back, but its index has no entries of them, which " +
            s"REFRESH SKIPPING INDEX adds: ${failure.getMessage}")
    }
}

object RestoreCommand {
  private val log = LoggerFactory.getLogger(getClass)
}
