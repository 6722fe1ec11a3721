package io.pyzorder.write

import scala.collection.mutable

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{BasicWriteJobStatsTracker, WriteTaskStats}
import org.apache.spark.sql.execution.datasources.WriteTaskStatsTracker
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

import io.pyzorder.index.collect.{SketchedColumns, StatisticsTracker}
import io.pyzorder.index.model.{ColumnStatistics, IndexedColumn}
import io.pyzorder.index.sketch.ColumnSketch

/**
 * A file that one task of a write job has written.
 *
 * @param folder     the path of the file's folder relative to the table's folder, with parts joined
 *                   by "/". For a partition outside the table's folder, the values of the partition
 *                   columns instead
 * @param statistics the columns' statistics, keyed by IndexedColumn.name
 * @param sketches   the columns' sketches, keyed by IndexedColumn.name
 */
final case class NewFile(
    folder: Either[InternalRow, String],
    name: String,
    numRecords: Long,
    statistics: Map[String, ColumnStatistics],
    sketches: Map[String, ColumnSketch])

/**
 * Collects statistics of every file that is written, in addition to what Spark's tracker counts.
 *
 * @param depth   number of partition columns, which is the number of folders between the table's
 *                folder and a file
 * @param columns the columns for which statistics are collected
 * @param sketched the columns for which sketches are collected
 * @param schema  the schema of the files
 * @param format  "parquet" or "orc"
 * @param millis  whether Parquet timestamps are stored in milliseconds
 */
final class NewFiles(
    conf: SerializableConfiguration,
    metrics: Map[String, SQLMetric],
    depth: Int,
    columns: Seq[IndexedColumn],
    sketched: SketchedColumns,
    schema: StructType,
    format: String,
    millis: Boolean)
    extends BasicWriteJobStatsTracker(conf, metrics) {

  @transient private var written: Seq[NewFile] = Nil

  /** The files that all tasks wrote; empty until the job has committed. */
  def files: Seq[NewFile] = written

  override def newTaskInstance(): WriteTaskStatsTracker =
    new TaskFiles(
      super.newTaskInstance(), depth,
      () => new StatisticsTracker(columns, schema, sketched = sketched),
      _.written(format, millis), _.writtenSketches(millis))

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
    depth: Int,
    newTracker: () => StatisticsTracker,
    result: StatisticsTracker => Map[String, ColumnStatistics],
    hashes: StatisticsTracker => Map[String, ColumnSketch])
    extends WriteTaskStatsTracker {

  private val trackers = mutable.LinkedHashMap.empty[String, StatisticsTracker]
  private val sketches = mutable.HashMap.empty[String, Map[String, ColumnSketch]]
  private val partitions = mutable.HashMap.empty[String, InternalRow]
  private var partition = InternalRow.empty

  override def newPartition(partitionValues: InternalRow): Unit = {
    basic.newPartition(partitionValues)
    partition = partitionValues.copy()
  }

  override def newFile(filePath: String): Unit = {
    basic.newFile(filePath)
    trackers(filePath) = newTracker()
    partitions(filePath) = partition
  }

  override def newRow(filePath: String, row: InternalRow): Unit = {
    basic.newRow(filePath, row)
    trackers(filePath).update(row)
  }

  /**
   * Encodes the file's sketches immediately. This frees the memory in which the hashes were
   * collected, which matters because a task may write many files.
   */
  override def closeFile(filePath: String): Unit = {
    basic.closeFile(filePath)
    sketches(filePath) = hashes(trackers(filePath))
  }

  override def getFinalStats(taskCommitTime: Long): WriteTaskStats = {
    val files = trackers.toSeq.map { case (path, tracker) =>
      val file = new Path(path)
      val (folder, name) = NewFiles.nameElsewhere(file) match {
        case Some(name) => (Left(partitions(path)), name)
        case None => (Right(NewFiles.folderOf(file.getParent, depth)), file.getName)
      }
      NewFile(
        folder, name, tracker.numRecords, result(tracker),
        sketches.getOrElse(path, hashes(tracker)))
    }
    TaskNewFiles(basic.getFinalStats(taskCommitTime), files)
  }
}

object NewFiles {

  private val Elsewhere = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-(.+)".r

  /**
   * The final name of a file whose partition is outside the table's folder. The committer moves the
   * file from `.spark-staging-…/<uuid>-<name>` to the partition's folder. None if the file's
   * partition is below the table's folder.
   */
  private[write] def nameElsewhere(file: Path): Option[String] = file.getName match {
    case Elsewhere(name) if file.getParent.getName.startsWith(".spark-staging-") => Some(name)
    case _ => None
  }

  /**
   * The folder of a task's file after the commit, relative to the table's folder. It is the end of
   * the temporary folder's path, such as `day=1` in
   * `…/.spark-staging-…/_temporary/0/_temporary/attempt_…/day=1`. The parts of the path are counted
   * rather than recognized by name, because a partition's folder may have the same name as one of
   * the committer's folders. Spark creates one folder for each partition column and escapes slashes
   * in values.
   */
  private[write] def folderOf(folder: Path, depth: Int): String =
    folder.toUri.getPath.split('/').takeRight(depth).mkString("/")
}
