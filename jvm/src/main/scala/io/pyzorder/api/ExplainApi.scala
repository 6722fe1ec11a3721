package io.pyzorder.api

import java.util.{Collections, IdentityHashMap}

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.catalyst.expressions.Alias
import org.apache.spark.sql.catalyst.plans.logical.Project
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution.{FileSourceScanExec, LeafExecNode, QueryExecution, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, AdaptiveSparkPlanHelper}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, FileScan}
import org.apache.spark.sql.execution.datasources.v2.orc.OrcScan
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScan

import io.pyzorder.skipping.files.{ReportingFileIndex, SkippingOutcome, ZOrderFileIndex}
import io.pyzorder.skipping.joins.SkippingDiagnostics
import io.pyzorder.skipping.predicate.{Outcomes, PredicateRules}

/** The entry points for `pyzorder.explain`. Each takes a QueryExecution and returns JSON. */
object ExplainApi extends AdaptiveSparkPlanHelper {

  private val mapper = new ObjectMapper()

  /**
   * Reports how many files each scan of a query skips. Returns a JSON object. Its array `scans` has
   * one object per scan, in plan order; the scans of subqueries come last. Its array `removed` has
   * the names of the tables whose scans are no longer in the plan, because adaptive execution found
   * part of the query to have no rows. Such a scan may have been executed. The object of a scan has
   * `table`, `selectedBytes`, `totalBytes`, `milliseconds`, `indexFilter` and the file counts
   * `total`, `selected`, `skipped`, `skippedByJoins`, `skippedBySketches`, `unindexed` and
   * `answered`. It also has `joinKeys` (for each join whose keys were used, a description such as
   * `days.d (3 values after 20 ms)`; keys of broadcasts are missing until the query has run),
   * `reasons` (why the index or part of the predicate was not used) and `opened` (the paths of the
   * files that are opened). If the files were not listed for this query, `asOf` is the time, in
   * milliseconds since the epoch, when they were last known to be the table's current files.
   */
  def explain(execution: QueryExecution): String = {
    val result = mapper.createObjectNode()
    val (scans, removed) = (result.putArray("scans"), result.putArray("removed"))
    val found = outcomes(execution.executedPlan)
    found.foreach { outcome =>
      val item = scans.addObject()
      item.put("table", outcome.table)
      item.put("total", outcome.total)
      item.put("selected", outcome.selected)
      item.put("skipped", outcome.skipped)
      item.put("skippedByJoins", outcome.skippedByJoins)
      item.put("skippedBySketches", outcome.skippedBySketches)
      item.put("unindexed", outcome.unindexed)
      item.put("answered", outcome.answered)
      item.put("selectedBytes", outcome.selectedBytes)
      item.put("totalBytes", outcome.totalBytes)
      item.put("milliseconds", outcome.nanos / 1e6)
      item.put("indexFilter", outcome.filter.toString)
      val joinKeys = item.putArray("joinKeys")
      outcome.joins.foreach(keys => joinKeys.add(keys.toString))
      val reasons = item.putArray("reasons")
      outcome.reasons.foreach(reason => reasons.add(reason))
      outcome.asOf.foreach(time => item.put("asOf", time))
      val opened = item.putArray("opened")
      outcome.opened.foreach(path => opened.add(path))
    }
    execution.executedPlan match {
      case adaptive: AdaptiveSparkPlanExec if adaptive.isFinalPlan =>
        tables(execution).filterNot(found.map(_.table).contains).foreach(name => removed.add(name))
      case _ =>
    }
    mapper.writeValueAsString(result)
  }

  /** The tables that a query would read if it were executed as it was planned. */
  private def tables(execution: QueryExecution): Seq[String] =
    execution.optimizedPlan.collect { case relation: LogicalRelation => relation.relation }
      .collect { case HadoopFsRelation(index: ZOrderFileIndex, _, _, _, _, _) => index.table }
      .distinct

  /**
   * Takes a query of the form `SELECT p AS a, … FROM table` and evaluates each predicate `p` on the
   * table's index. Returns a JSON array of objects with the filters `mayBeTrue`, `mayBeFalse` and
   * `mayBeNull`, and with `files`, which maps the path of each indexed file to the sum of the codes
   * of the outcomes that are possible for its rows (1 for TRUE, 2 for FALSE, 4 for NULL).
   */
  def judgements(execution: QueryExecution): String = {
    val plan = execution.optimizedPlan
    val predicates = plan.collectFirst { case Project(columns, _) => columns }.getOrElse(Nil)
    val index = plan.collectFirst { case relation: LogicalRelation => relation.relation }.collect {
      case HadoopFsRelation(index: ZOrderFileIndex, _, _, _, _, _) => index
    }
    val list = mapper.createArrayNode()
    predicates.foreach { named =>
      val predicate = named.transform { case Alias(child, _) => child }
      val judgement = PredicateRules(predicate)
      val item = list.addObject()
      item.put("mayBeTrue", judgement.may(Outcomes.True).toString)
      item.put("mayBeFalse", judgement.may(Outcomes.False).toString)
      item.put("mayBeNull", judgement.may(Outcomes.Null).toString)
      val files = item.putObject("files")
      for {
        examined <- index.toSeq.flatMap(_.examine(Nil, Seq(predicate), asked = false))
        file <- examined.files.iterator ++ examined.skipped.examined
        known <- file.known
      } files.put(file.file.getPath.toString, known.outcomes)
    }
    mapper.writeValueAsString(list)
  }

  /**
   * The outcomes of all file scans, including scans that do not skip any files. Cached data is
   * represented by the scans that fill the cache.
   */
  private def outcomes(plan: SparkPlan): Seq[SkippingOutcome] = {
    val unused = SkippingDiagnostics(plan)
    // If scans wait for a broadcast's keys, a plan that has not run yet contains the broadcast
    // several times.
    val seen = Collections.newSetFromMap(new IdentityHashMap[SparkPlan, java.lang.Boolean])
    collectWithSubqueries(plan) {
      case leaf @ (_: LeafExecNode) if !seen.add(leaf) => Nil
      case scan: FileSourceScanExec =>
        outcome(scan).map(o => o.copy(reasons = o.reasons ++ unused.of(scan))).toSeq
      case batch: BatchScanExec => ofVersionTwo(batch.scan).toSeq
      case cached: InMemoryTableScanExec =>
        outcomes(cached.relation.cachedPlan).map(o => o.copy(reasons = o.reasons :+ FromCache))
    }.flatten
  }

  private def outcome(scan: FileSourceScanExec): Option[SkippingOutcome] =
    scan.relation.location match {
      case index: ReportingFileIndex => Some(index.outcome(scan.partitionFilters, scan.dataFilters))
      case _ => None
    }

  private def ofVersionTwo(scan: Scan): Option[SkippingOutcome] = scan match {
    case _: ParquetScan | _: OrcScan =>
      val files = scan.asInstanceOf[FileScan].fileIndex
      Some(SkippingOutcome.unserved(
          files.rootPaths.headOption.fold("files")(_.getName), files.inputFiles.length,
          files.sizeInBytes, VersionTwo))
    case _ => None
  }

  private val VersionTwo = "Spark reads this format as a V2 source, which does not skip any " +
    "files; add the format to spark.sql.sources.useV1SourceList"

  private val FromCache = "the rows come from Spark's cache; the filters of the cached query " +
    "skip files only when the cache is filled"
}
