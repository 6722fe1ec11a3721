package io.pyzorder.advisor

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.{ExpandExec, FilterExec, SortExec, SparkPlan}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{IntegerType, LongType}

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.common.{JobDescription, TaskFunction}
import io.pyzorder.layout.cells.{Clustering, ClusteringKeys, PlaceInFile, Region, ShuffleKey}
import io.pyzorder.layout.write.{FileWriters, InputRelation}

/**
 * Measures how large a table's files would be in other layouts. How well values compress depends on
 * the neighboring values, most of which are missing from a sample. The probe therefore writes a few
 * complete files of each layout to temporary local folders, measures them and deletes them.
 *
 * @param session a session from RewriteSession.of
 * @param options the table's options, including `compression`
 * @param rows    a sample of the rows in `partitions`. The sample's partition numbers are positions
 *                in `partitions`
 */
final class SizeProbe(
    session: shim.SparkSession,
    table: ResolvedTable,
    options: Map[String, String],
    partitions: Seq[AdvisedPartition],
    rows: SampledRows) {
  import SizeProbe._

  /**
   * For each file, the position of its table partition in `partitions`. The position is the same in
   * every layout.
   */
  private val folders: Array[Int] =
    rows.judgedOf.indices.flatMap(p => Seq.fill(rows.judgedOf(p))(p)).toArray

  /**
   * The files to write in each layout. Maps shuffle keys to file numbers. All rows of a file have
   * the same shuffle key.
   */
  private val chosen: Map[Int, Int] = {
    val size = partitions.map(_.size).sum / folders.length
    val count = math.min(
      folders.length.toLong, math.max(2L, math.min(MostFiles, MostBytes / math.max(1L, size))))
    val keys = Clustering.keysOf(folders.length)
    (0L until count).map(i => ((2 * i + 1) * folders.length / (2 * count)).toInt)
      .map(file => keys(file) -> file).toMap
  }

  /**
   * For each layout, the ratio of the size of the written files to the estimated current size of
   * the same rows. Runs one job, which reads every table partition that contains a chosen file.
   *
   * @param layouts the clustering columns of each layout, given as positions in the sample
   */
  def growth(layouts: Seq[Seq[Int]]): Seq[Double] = {
    val read = chosen.values.map(folders(_)).toSet
    val input = new InputRelation(
      session, table.root, table.relation.fileFormat, table.dataSchema, table.options,
      partitions.indices.map(p => if (read(p)) partitions(p).files else Nil))
    val tried = layouts.map { by =>
      val columns = by.map(c => input.value(rows.columns(c)))
      val keys = ClusteringKeys.of(columns, Curve, direct = false)
      val clustering = Clustering.of(keys, rows.sample.only(by), rows.judgedOf.map(_ -> Region))
      columns -> session.sparkContext.broadcast(clustering)
    }
    try {
      val files = write(input, tried)
      layouts.indices.map { layout =>
        val own = files.filter(_.layout == layout)
        val now = own.map { file =>
          val partition = partitions(folders(chosen(file.key)))
          partition.size.toDouble / partition.numRows * file.rows
        }
        if (own.isEmpty) 1.0 else own.map(_.bytes).sum / now.sum
      }
    } finally tried.foreach(_._2.destroy())
  }

  private def write(input: InputRelation, tried: Seq[Tried]): Seq[ProbedFile] = {
    val writers = FileWriters.of(session, table.relation.fileFormat, table.dataSchema, options)
    val plan = laidOut(input, tried)
    val weigher = new SizeProbeWriter(
      writers, BindReferences.bindReferences[Expression](input.data, plan.output))
    JobDescription.step(session.sparkContext, "write trial files")(
      plan.execute().mapPartitions(TaskFunction(weigher.weigh)).collect()).toSeq
  }

  /** The rows of the files chosen for each layout, in the order in which they will be written. */
  private def laidOut(input: InputRelation, tried: Seq[Tried]): SparkPlan = {
    val layout = AttributeReference("layout", IntegerType, nullable = false)()
    val key = AttributeReference("key", IntegerType, nullable = false)()
    val place = AttributeReference("place", LongType, nullable = false)()
    val each = tried.zipWithIndex.map { case ((columns, clustering), number) =>
      input.data ++ Seq(
        Literal(number), ShuffleKey(columns, input.partition, clustering, turn = None),
        PlaceInFile(columns, clustering))
    }
    val expanded = ExpandExec(each, input.data ++ Seq(layout, key, place), input.all)
    val kept = FilterExec(In(key, chosen.keys.map(Literal(_)).toSeq), expanded)
    val sent = ShuffleExchangeExec(
      HashPartitioning(Seq(layout, key), chosen.size * tried.length), kept)
    SortExec(Seq(layout, key, place).map(SortOrder(_, Ascending)), global = false, sent)
  }
}

private object SizeProbe {

  /**
   * The clustering columns of a layout, and the clustering that assigns rows to the layout's files.
   */
  type Tried = (Seq[Expression], Broadcast[Clustering])

  private val Curve = "zorder"

  /**
   * The maximum number of files to write for each layout, and their maximum total size. If a layout
   * has at least two files, two are written even if their total size is larger.
   */
  private val MostFiles = 8L
  private val MostBytes = 256L << 20
}
