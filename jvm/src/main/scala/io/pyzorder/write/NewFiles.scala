package io.pyzorder.write

import scala.collection.mutable

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{BasicWriteJobStatsTracker, WriteTaskStats}
import org.apache.spark.sql.execution.datasources.WriteTaskStatsTracker
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

import io.pyzorder.index.{ColumnStatistics, IndexedColumn, StatisticsTracker}

/**
 * A file that a task of a write has written.
 *
 * @param folder     below the table's folder, parts joined by "/"
 * @param statistics by IndexedColumn.name
 */
final case class NewFile(
    folder: String,
    name: String,
    numRecords: Long,
    statistics: Map[String, ColumnStatistics])

/**
 * Counts what Spark's own tracker counts, and takes statistics of every file that is written.
 *
 * @param root    the table's folder
 * @param columns to take statistics of
 * @param schema  of the files
 * @param format  "parquet" or "orc"
 * @param millis  Parquet timestamps are stored in milliseconds
 */
final class NewFiles(
    conf: SerializableConfiguration,
    metrics: Map[String, SQLMetric],
    root: Path,
    columns: Seq[IndexedColumn],
    schema: StructType,
    format: String,
    millis: Boolean)
    extends BasicWriteJobStatsTracker(conf, metrics) {

  @transient private var written: Seq[NewFile] = Nil

  /** The files of all tasks, once the job is committed. */
  def files: Seq[NewFile] = written

  override def newTaskInstance(): WriteTaskStatsTracker =
    new TaskFiles(
      super.newTaskInstance(), root, () => new StatisticsTracker(columns, schema),
      _.written(format, millis))

  override def processStats(stats: Seq[WriteTaskStats], jobCommitTime: Long): Unit = {
    val tasks = stats.collect { case task: TaskNewFiles => task }
    super.processStats(tasks.map(_.basic), jobCommitTime)
    written = tasks.flatMap(_.files)
  }
}

private final case class TaskNewFiles(basic: WriteTaskStats, files: Seq[NewFile])
    extends WriteTaskStats

private final class TaskFiles(
    basic: WriteTaskStatsTracker,
    root: Path,
    newTracker: () => StatisticsTracker,
    result: StatisticsTracker => Map[String, ColumnStatistics])
    extends WriteTaskStatsTracker {

  private val trackers = mutable.LinkedHashMap.empty[String, StatisticsTracker]

  override def newPartition(partitionValues: InternalRow): Unit =
    basic.newPartition(partitionValues)

  override def newFile(filePath: String): Unit = {
    basic.newFile(filePath)
    trackers(filePath) = newTracker()
  }

  override def newRow(filePath: String, row: InternalRow): Unit = {
    basic.newRow(filePath, row)
    trackers(filePath).update(row)
  }

  override def closeFile(filePath: String): Unit = basic.closeFile(filePath)

  override def getFinalStats(taskCommitTime: Long): WriteTaskStats = {
    val files = trackers.toSeq.map { case (path, tracker) =>
      val file = new Path(path)
      NewFile(
        NewFiles.folderOf(root, file.getParent), file.getName, tracker.numRecords,
        result(tracker))
    }
    TaskNewFiles(basic.getFinalStats(taskCommitTime), files)
  }
}

object NewFiles {

  /**
   * Where a task's file will lie once it is committed: what its temporary folder has after the
   * committer's own folders, such as `day=1` of
   * `…/.spark-staging-…/_temporary/0/_temporary/attempt_…/day=1`.
   */
  private[write] def folderOf(root: Path, folder: Path): String = {
    val below = folder.toUri.getPath.stripPrefix(root.toUri.getPath).split('/').filter(_.nonEmpty)
    below.drop(below.lastIndexWhere(isCommitters) + 1).mkString("/")
  }

  private def isCommitters(name: String): Boolean =
    name.startsWith("attempt_") || (name.startsWith("_") || name.startsWith(".")) &&
      !name.contains("=")
}
