package io.pyzorder.commands.action

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.util.SerializableConfiguration

import io.pyzorder.common.{JobDescription, TaskFunction, ZOrderErrors}
import io.pyzorder.index.collect.RowCounts
import io.pyzorder.publish.{StagedFile, Writer}
import io.pyzorder.storage.{CopyFile, FileSystems, Links, MetadataFiles}

/** Copies whole files to a writer's staging folder in one Spark job. */
private[commands] object FileCopies {

  /**
   * @param files   for each file, its future path in the table and its current path
   * @param command the command to name in the job's description, such as RESTORE
   */
  def stage(
      session: shim.SparkSession,
      writer: Writer,
      files: Seq[(String, Path)],
      command: String): Seq[StagedFile] = if (files.isEmpty) Nil
  else {
    val moves = files.map { case (name, from) =>
      (name, from.toString, writer.stagedPath(name).toString)
    }
    files.find { case (_, from) => writer.folder.isStrange(from) }
      .foreach { case (_, from) => throw ZOrderErrors.strangeLink(from.toString) }
    val context = session.sparkContext
    val conf =
      context.broadcast(new SerializableConfiguration(session.sessionState.newHadoopConf()))
    def copied = context.parallelize(moves, math.min(moves.length, 10000))
      .map(TaskFunction { (move: (String, String, String)) =>
        val (path, from, to) = (move._1, new Path(move._2), new Path(move._3))
        val hadoopConf = conf.value.value
        val fs = to.getFileSystem(hadoopConf)
        // Copying a folder would follow the links in it, and copying a pipe would block forever.
        val source = from.getFileSystem(hadoopConf)
        if (!source.getFileStatus(from).isFile || FileSystems.isSpecial(from) ||
          Links.inOwn(from) || Links.strange(from, from))
          throw ZOrderErrors.conflict(s"$from is no longer a regular file")
        MetadataFiles.makeFolder(hadoopConf, to.getParent)
        CopyFile.copy(hadoopConf, from, to)
        val rows =
          try RowCounts.of(hadoopConf, to)
          catch { case NonFatal(damage) => throw ZOrderErrors.unreadable(from.toString, damage) }
        StagedFile(to, path, fs.getFileStatus(to).getLen, rows)
      }).collect().toSeq
    JobDescription.during(
      context, s"$command ${writer.folder.root}: copy ${moves.length} files")(
      JobDescription.step(context, "copy whole files")(copied))
  }
}
