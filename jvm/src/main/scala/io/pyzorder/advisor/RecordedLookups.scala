package io.pyzorder.advisor

import scala.collection.mutable

import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.{ResolvedTable, TableFiles}
import io.pyzorder.index.model.{ExpressionColumn, IndexedColumn}
import io.pyzorder.layout.select.PartitionListing
import io.pyzorder.skipping.predicate.IndexFilter
import io.pyzorder.workload.WorkloadRecorder

/**
 * The recorded queries that can skip files if the table is clustered.
 *
 * @param all      their number
 * @param byFolder the number of those that read each folder
 */
final class RecordedLookups private (val all: Long, byFolder: Map[String, Long]) {

  /** The number of these queries that read a folder with files of one partition. */
  def in(folder: String): Long = byFolder.getOrElse(folder, all)
}

object RecordedLookups {

  /** The number of days whose queries count, not counting days without queries. */
  val Days = 7

  /**
   * The queries, on the last `Days` days with queries, whose filters or join keys restrict a
   * clustering column. None if there are no clustering columns, or no recorded queries.
   *
   * @param columns the clustering columns. A filter on a column that an expression reads counts
   */
  def of(
      session: shim.SparkSession,
      table: ResolvedTable,
      columns: Seq[IndexedColumn]): Option[RecordedLookups] =
    if (columns.isEmpty) None
    else {
      val recorded = WorkloadRecorder.read(session, table.folder(session))
      if (recorded.isEmpty) None
      else {
        val usable = new RecordedConditions(session, table.schema.fieldNames.toSeq)
        val paths = pathsOf(columns)
        val lookups = RecordedReading.of(recorded.ofLast(Days)).filter(reading =>
          reading.joinKeys.exists(usable.isOneOf(_, paths)) ||
            reading.conditions.exists(usable.restricts(_, paths)))
        Some(new RecordedLookups(
            lookups.map(_.weight).sum, byFolder(session, table, lookups, usable)))
      }
    }

  private def pathsOf(columns: Seq[IndexedColumn]): Seq[Seq[String]] = columns.flatMap {
    case ExpressionColumn(expression) => expression.inputs.map(Seq(_))
    case column => Seq(column.path)
  }.distinct

  /** For each folder of a partitioned table, the number of queries that read it. */
  private def byFolder(
      session: shim.SparkSession,
      table: ResolvedTable,
      lookups: Seq[RecordedReading],
      usable: RecordedConditions): Map[String, Long] = {
    val folders = PartitionListing.partitions(
      table.partitionSchema, TableFiles.listing(session, table), table.folder(session))
    val layout = WhatIfLayout.of(
      session, table, Nil,
      folders.map { case (_, values) => WhatIfFile(1L, Some(values), Nil) })
    val derived = new WorkloadFilters(session, table, Nil)
    val known = mutable.HashMap.empty[String, IndexFilter]
    def filter(condition: String): IndexFilter = known.getOrElseUpdate(
      condition,
      if (usable.readsOnly(condition, table.partitionSchema.fieldNames.toSeq))
        derived.ofPredicate(condition).filter
      else IndexFilter.Always)
    val counts = new Array[Long](folders.length)
    if (folders.nonEmpty) lookups
      .groupBy(_.conditions.map(filter).foldLeft(IndexFilter.Always: IndexFilter)(IndexFilter.and))
      .foreach { case (filter, readings) =>
        val weight = readings.map(_.weight).sum
        layout.matching(filter).foreach(counts(_) += weight)
      }
    folders.map(_._1).zip(counts).toMap
  }
}
