package io.pyzorder.layout.write

import java.util.UUID

import org.apache.hadoop.fs.Path
import org.apache.spark.TaskContext
import org.apache.spark.paths.SparkPath
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BindReferences, Expression}
import org.apache.spark.sql.execution.{ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.datasources.{FileFormat, PartitionedFile}
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType

import io.pyzorder.common.{JobDescription, TaskFunction}
import io.pyzorder.index.collect.SketchedColumns
import io.pyzorder.index.model.{IndexedColumn, ZValueColumn}
import io.pyzorder.layout.select.RewriteGroup

/**
 * Rewrites the rows of existing files into new files in the staging folder.
 *
 * @param session    a session from RewriteSession.of
 * @param root       the table's folder
 * @param format     Spark's implementation of the format `formatName`, which is "parquet" or "orc"
 * @param schema     the files' schema
 * @param options    the table's options, including `compression`
 * @param millis     whether Parquet timestamps are stored in milliseconds
 * @param statistics the columns to collect statistics for, which may include a ZValueColumn
 * @param sketched   the columns for which sketches are collected
 * @param run        number of the command's run in the journal
 */
final class Rewrite(
    session: shim.SparkSession,
    root: Path,
    format: FileFormat,
    formatName: String,
    schema: StructType,
    options: Map[String, String],
    millis: Boolean,
    statistics: Seq[IndexedColumn],
    sketched: SketchedColumns,
    run: Long) {

  /**
   * Clusters the rows of each group and writes them to as many files as the group specifies. `plan`
   * must have been created for `input`.
   */
  def cluster(
      groups: Seq[RewriteGroup],
      input: InputRelation,
      plan: ClusteringPlan): Seq[WrittenFile] = {
    val clustering = plan.clustering
    val shared = session.sparkContext.broadcast(clustering)
    try {
      val laidOut = plan.keys.layOut(input.all, input.partition, shared)
      val folders = clustering.partitionOfLeaf.map(groups(_).folder)
      val curve = statistics.find(ZValueColumn.unapply(_).isDefined).map { column =>
        column -> BindReferences.bindReference(plan.keys.expressions.head, input.data)
      }
      described(s"lay out ${clustering.leafCount} files")(
        write(onlyData(laidOut, input).execute(), folders, curve))
    } finally shared.destroy()
  }

  /** Concatenates the files of each group into one file, in order and without a shuffle. */
  def compact(groups: Seq[RewriteGroup]): Seq[WrittenFile] = {
    val stored = InputRelation.asStored(schema)
    val read = format.buildReaderWithPartitionValues(
      session, stored, new StructType(), stored, Nil,
      options + (FileFormat.OPTION_RETURNING_BATCH -> "false"),
      session.sessionState.newHadoopConfWithOptions(options))
    val files = groups.map(_.files.map { file =>
      PartitionedFile(InternalRow.empty, SparkPath.fromPath(file.getPath), 0, file.getLen,
        Array.empty, file.getModificationTime, file.getLen)
    })
    val rows = session.sparkContext.parallelize(files, files.length)
      .mapPartitions(TaskFunction { (groups: Iterator[Seq[PartitionedFile]]) =>
        groups.flatMap(_.iterator).flatMap(read)
      })
    described(s"compact into ${groups.length} files")(
      write(rows, groups.map(_.folder).toArray, None))
  }

  /**
   * Keeps only the data columns. If there are no other columns, returns the plan unchanged, because
   * a projection would copy the rows.
   */
  private def onlyData(rows: SparkPlan, input: InputRelation): SparkPlan =
    if (rows.output.map(_.exprId) == input.data.map(_.exprId)) rows
    else ProjectExec(input.data, rows)

  private def write(
      rows: RDD[InternalRow],
      folders: Array[String],
      curve: Option[(IndexedColumn, Expression)]): Seq[WrittenFile] = {
    val writer = new LeafWriter(
      FileWriters.of(session, format, schema, options), schema,
      statistics.filter(ZValueColumn.unapply(_).isEmpty), sketched.inFiles(folders.length),
      formatName, millis, root.toString, run, folders, UUID.randomUUID().toString, curve)
    session.sparkContext.runJob(rows,
      TaskFunction { (leaf: Iterator[InternalRow]) =>
        writer.write(TaskContext.getPartitionId(), leaf)
      }).toSeq.flatten
  }

  private def described[T](what: String)(body: => T): T =
    JobDescription.during(session.sparkContext, s"OPTIMIZE $root: $what")(
      JobDescription.step(session.sparkContext, "lay out the new files")(body))
}
