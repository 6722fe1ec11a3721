package io.pyzorder.commands

import java.sql.Timestamp

import org.apache.spark.sql.{AnalysisException, Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types._

import io.pyzorder.catalog.{ClusteringColumns, ResolvedTable, TableFiles}
import io.pyzorder.commands.action.{ResultColumns, SkippingIndex}
import io.pyzorder.commands.optimize.{ChosenLayout, OptimizePlanner}
import io.pyzorder.expressions.OrderedBytes
import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.model.{ColumnStatistics, FileEntry, IndexedColumn, ZValueColumn}
import io.pyzorder.index.store.IndexStore
import io.pyzorder.layout.cells.FileBox
import io.pyzorder.layout.select.{LayoutEstimate, OpenedShare, RewritePlan}

/**
 * DESCRIBE SKIPPING INDEX: reports, in one row per column, how well the column separates the files.
 */
case class DescribeSkippingIndexCommand(table: ResolvedTable) extends LeafRunnableCommand {
  import DescribeSkippingIndexCommand._

  override val output: Seq[Attribute] = ResultColumns.none
    .always("column", StringType, "A column or an expression with statistics")
    .always("type", StringType, "Type of the column")
    .always("files", LongType, "Number of data files in the table")
    .always("unindexed", LongType,
      "Number of data files that have no index entry for their current state")
    .always("unknown", LongType, "Number of indexed files without bounds for this column")
    .add("average_overlap", DoubleType,
      "How many other files a file's range overlaps, on average; 0 is best")
    .add("max_depth", LongType,
      "The largest number of files whose ranges contain the same value; 1 is best")
    .add("lookup_share", DoubleType,
      "Estimated share of files (0 to 1) that a lookup of one value opens")
    .add("range_share", DoubleType,
      "Estimated share of files (0 to 1) opened by a query for a range with 1% of the rows")
    .always("clustered", LongType,
      "Number of files clustered by this column, alone or with others")
    .add("last_optimize", TimestampType, "Modification time of the newest clustered file")
    .add("verdict", StringType,
      "What an OPTIMIZE would do now and whether it pays off; the same in every row")
    .add("advice", StringType,
      "The statement to run now; null if none would pay off; the same in every row")
    .always("sketches", LongType, "Number of files with a sketch of this column")
    .always("sketch_bytes", LongType, "Size of these sketches in the index, in bytes")
    .always("value_lists", LongType,
      "Number of these sketches that list all values of the column instead of their hashes")
    .attributes

  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = sparkSession.asInstanceOf[shim.SparkSession]
    val ref = SkippingIndex.required(session, table)
    val (snapshot, entries) =
      IndexStore.loadAll(session, ref)(whole => (whole, whole.entries))
        .getOrElse((IndexSnapshot.empty, Nil))
    val files = TableFiles.list(session, table)
    val valid = SkippingIndex.valid(entries, files)
    val clustered = valid.filter(_.clusteredBy.nonEmpty)
    val last = clustered.map(_.modificationTime).sorted.lastOption.map(new Timestamp(_))
    val order = clustered.groupBy(_.clusteredBy).toSeq.sortBy(-_._2.length).headOption.map(_._1)
    lazy val next = nextStep(session, snapshot, order)
    ref.columns.filter(ZValueColumn.unapply(_).isEmpty).map { column =>
      val known = valid.flatMap(_.statistics.get(column.name))
        .filter(s => s.bounds.isDefined || s.empty)
      val health = ColumnHealth.of(column.dataType, known.flatMap(_.bounds))
      val share = openedShare(column, valid, files.size)
      val sketches = snapshot.sketches.sizeOf(column)
      Row(
        column.label,
        column.dataType.sql,
        files.size.toLong,
        (files.size - valid.size).toLong,
        (valid.size - known.size).toLong,
        health.map(_.averageOverlap).map(Double.box).orNull,
        health.map(_.maxDepth.toLong).map(Long.box).orNull,
        share.map(_.lookup).map(Double.box).orNull,
        share.map(_.range).map(Double.box).orNull,
        clustered.count(_.clusteredBy.contains(column.label)).toLong,
        last.orNull,
        next.verdict,
        next.advice.orNull,
        sketches.files.toLong,
        sketches.bytes,
        sketches.lists.toLong)
    }
  }

  /**
   * The share of the table's files that a query on the column opens. A query always opens unindexed
   * files.
   */
  private def openedShare(
      column: IndexedColumn,
      valid: Seq[FileEntry],
      files: Int): Option[OpenedShare] =
    if (files == 0 || !OrderedBytes.supports(column.dataType)) None
    else {
      val known = valid.map { entry =>
        FileBox(
          entry.size,
          Seq(entry.statistics.getOrElse(column.name, ColumnStatistics.unknown)))
      }
      val unknown = Seq.fill(files - valid.size)(FileBox(0L, Seq(ColumnStatistics.unknown)))
      Some(LayoutEstimate.of(column.dataType, known ++ unknown))
    }

  /**
   * What an OPTIMIZE with the table's default clustering columns would do now.
   *
   * @param order the most frequent clustering columns of the table's files; None if no file is
   *              clustered
   */
  private def nextStep(
      session: shim.SparkSession,
      snapshot: IndexSnapshot,
      order: Option[Seq[String]]): NextStep =
    try {
      val names = order.map(_.mkString(", "))
      lazy val columns = ClusteringColumns.default(session, table)
      if (!order.forall(_.forall(label => snapshot.columns.exists(_.label == label)))) {
        NextStep(
          s"The index has no statistics for some of the clustering columns ${names.mkString}.",
          None)
      } else if (order.isDefined && columns.isEmpty) {
        NextStep(
          s"Most files are clustered by ${names.mkString}, but the table can no longer be " +
            "clustered by these columns. Name other columns in ZORDER BY.", None)
      } else {
        val outlook = OptimizePlanner.outlook(session, table, ChosenLayout(columns))
        val (plan, verdict) = (outlook.plan, outlook.verdict)
        val full = plan.remark.filterNot(_ => verdict.isHarm)
          .map(_ => table.optimizeBy(columns, full = true))
        val work =
          if (columns.isEmpty) Some("The table has no clustering columns.")
          else if (verdict.isHarm) Some("OPTIMIZE would be rejected.")
          else workOf(plan)
        NextStep(
          (work.toSeq ++ Seq(verdict.sentence) ++ plan.remark).mkString(" "),
          if (verdict.kind == "pays") Some(table.optimizeBy(columns)) else full)
      }
    } catch {
      case failure: AnalysisException =>
        NextStep(s"OPTIMIZE would fail: ${failure.getMessage}", None)
    }

  /** A sentence that says which files an OPTIMIZE would rewrite, if any. */
  private def workOf(plan: RewritePlan): Option[String] = {
    val replaced = plan.groups.map(_.files.length).sum
    val fresh = plan.fresh.length
    if (replaced == 0) None
    else if (fresh == 0) {
      Some(s"OPTIMIZE would merge $replaced files that are much smaller than the target size.")
    } else {
      val others = replaced - fresh
      Some(
        s"OPTIMIZE would cluster $fresh new ${if (fresh == 1) "file" else "files"}" +
          (if (others == 0) "." else s" together with $others that are already clustered."))
    }
  }
}

private object DescribeSkippingIndexCommand {

  /**
   * @param verdict what an OPTIMIZE would do
   * @param advice  the statement to run, if one pays off
   */
  private final case class NextStep(verdict: String, advice: Option[String])
}
