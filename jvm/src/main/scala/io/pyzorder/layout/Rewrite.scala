package io.pyzorder.layout

import java.util.UUID

import org.apache.hadoop.fs.Path
import org.apache.hadoop.mapreduce.Job
import org.apache.spark.TaskContext
import org.apache.spark.paths.SparkPath
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Ascending, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.{ProjectExec, SortExec}
import org.apache.spark.sql.execution.datasources.{FileFormat, PartitionedFile}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{MetadataBuilder, StructType}
import org.apache.spark.util.SerializableConfiguration

import io.pyzorder.TaskFunction
import io.pyzorder.expressions.ZOrderValue
import io.pyzorder.index.IndexedColumn

/**
 * How the rows of chosen files become new files in the staging folder.
 *
 * @param session    RewriteSession.of the user's
 * @param root       the table's folder
 * @param format     Spark's implementation of `formatName`, "parquet" or "orc"
 * @param schema     of the files
 * @param options    the table's, with `compression`
 * @param millis     Parquet timestamps are stored in milliseconds
 * @param statistics the columns to take statistics of
 * @param run        number of the writing command in the journal
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
    run: Long) {

  /**
   * Clusters each group's rows into its number of files.
   *
   * @param columns   paths of the clustering columns, as the schema spells them
   * @param curve     `zorder`, `hilbert` or `linear`
   * @param direct    z-values of the values' own ordered bytes, not of their ranks: the rows are
   *                  sorted by them alone, and cut into even files; only with curve `zorder`
   * @param fractions share of each group's rows to sample
   */
  def cluster(
      groups: Seq[RewriteGroup],
      columns: Seq[Seq[String]],
      curve: String,
      direct: Boolean,
      fractions: Array[Double]): Seq[WrittenFile] = {
    val input = new InputRelation(session, root, format, schema, options, groups.map(_.files))
    val keys =
      if (direct) Seq(ZOrderValue(columns.map(input.column))) else columns.map(input.column)
    val lexical = direct || curve == "linear"
    describe("sample the clustering columns")
    val sample = Sample.take(input.only(columns), keys, input.partition, fractions)
    val boundaries = keys.zipWithIndex.map { case (key, number) =>
      sample.boundaries(key, number, Rewrite.MaxBoundaries)
    }.toArray
    val trees = groups.zipWithIndex.map { case (group, number) =>
      KdTree.build(sample.ids(boundaries, number), group.leaves, lexical)
    }.toArray
    val clustering = new Clustering(boundaries, trees, curve)
    val shared = session.sparkContext.broadcast(clustering)
    try {
      val sent = HashPartitioning(
        Seq(ShuffleKey(keys, input.partition, shared)), clustering.leafCount)
      val order = if (lexical) keys else Seq(PlaceInFile(keys, shared))
      val sorted = SortExec(
        order.map(SortOrder(_, Ascending)), global = false, ShuffleExchangeExec(sent, input.all))
      describe(s"lay out ${clustering.leafCount} files")
      val folders = clustering.partitionOfLeaf.map(groups(_).folder)
      write(ProjectExec(input.data, sorted).execute(), folders)
    } finally shared.destroy()
  }

  /** Joins each group's files into one, in their order, without a shuffle. */
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
    describe(s"compact into ${groups.length} files")
    val rows = session.sparkContext.parallelize(files, files.length)
      .mapPartitions(TaskFunction { (groups: Iterator[Seq[PartitionedFile]]) =>
        groups.flatMap(_.iterator).flatMap(read)
      })
    write(rows, groups.map(_.folder).toArray)
  }

  private def write(rows: RDD[InternalRow], folders: Array[String]): Seq[WrittenFile] = {
    val stored = Rewrite.asWritten(schema)
    val job = Job.getInstance(session.sessionState.newHadoopConfWithOptions(options))
    val factory = format.prepareWrite(session, job, options, stored)
    val writer = new LeafWriter(
      factory, stored, schema, statistics, formatName, millis, root.toString, run, folders,
      UUID.randomUUID().toString, new SerializableConfiguration(job.getConfiguration))
    session.sparkContext.runJob(rows,
      TaskFunction { (leaf: Iterator[InternalRow]) =>
        writer.write(TaskContext.getPartitionId(), leaf)
      }).toSeq.flatten
  }

  private def describe(what: String): Unit =
    session.sparkContext.setJobDescription(s"OPTIMIZE $root: $what")
}

object Rewrite {

  /** So many distinct ranks of a column tell files apart well enough. */
  private val MaxBoundaries = 1 << 16

  /** The schema that new files carry: without what only the catalog means. */
  private def asWritten(schema: StructType): StructType =
    StructType(InputRelation.asStored(schema).map { field =>
      field.copy(metadata = new MetadataBuilder().withMetadata(field.metadata)
        .remove("EXISTS_DEFAULT").remove("CURRENT_DEFAULT").build())
    })
}
