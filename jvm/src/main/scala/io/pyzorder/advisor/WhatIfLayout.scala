package io.pyzorder.advisor

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.model.{ColumnStatistics, EvaluationSettings, FileEntry, IndexedColumn}
import io.pyzorder.index.model.{IndexedColumns, ReadSettings}
import io.pyzorder.skipping.files.{ColumnReading, SnapshotStatistics}
import io.pyzorder.skipping.predicate.IndexFilter

/**
 * An existing or hypothetical file.
 *
 * @param partition the values of the table's partition columns; None if they are not known
 * @param columns   the statistics of the layout's columns, in order
 */
final case class WhatIfFile(
    bytes: Long,
    partition: Option[InternalRow],
    columns: Seq[ColumnStatistics])

/**
 * An existing or hypothetical layout of a table. Index filters are evaluated on an in-memory index
 * of the layout's files. The index also includes the partition columns, which have a single value
 * per file.
 */
final class WhatIfLayout private (snapshot: IndexSnapshot, facts: SnapshotStatistics) {

  /** The total size in bytes of the files that the filter selects. */
  def opened(filter: IndexFilter): Long = matching(filter).map(snapshot.size(_)).sum

  /** The numbers of the files that the filter selects. */
  def matching(filter: IndexFilter): Iterator[Int] = {
    val test = filter.bind(facts)
    Iterator.range(0, snapshot.numFiles).filter(test.mayMatch(_))
  }
}

object WhatIfLayout {

  /**
   * @param columns the columns for which the files have statistics, in the order of
   *                WhatIfFile.columns
   */
  def of(
      session: shim.SparkSession,
      table: ResolvedTable,
      columns: Seq[IndexedColumn],
      files: Seq[WhatIfFile]): WhatIfLayout = {
    val settings = ReadSettings.of(session, table.options, table.fileSchema)
    val folders = table.partitionSchema.fields.zipWithIndex.toSeq.collect {
      case (field, i) if IndexedColumns.supports(field.dataType) =>
        IndexedColumn(Seq(field.name), field.dataType) -> i
    }
    val entries = files.zipWithIndex.map { case (file, number) =>
      val ofPartition = for {
        values <- file.partition.toSeq
        (column, i) <- folders
      } yield column.name -> oneValue(values.get(i, column.dataType))
      FileEntry(
        path = number.toString,
        size = file.bytes,
        modificationTime = 0L,
        numRecords = MoreThanNulls,
        clusteredBy = Nil,
        readSettings = settings.fingerprint,
        statistics = columns.map(_.name).zip(file.columns).toMap ++ ofPartition)
    }
    val snapshot = IndexSnapshot.of(columns ++ folders.map(_._1), entries)
    val conf = session.sessionState.conf
    val reading = ColumnReading(
      table.schema, conf.caseSensitiveAnalysis, settings.temporal, EvaluationSettings.of(conf))
    new WhatIfLayout(snapshot, new SnapshotStatistics(snapshot, reading))
  }

  /**
   * The row count recorded for every file. It is larger than every null count. If it were equal to
   * a null count, data skipping would infer that all values of a column are null. In a WhatIfFile,
   * only `empty` indicates that a column has no values.
   */
  private val MoreThanNulls = 1L << 40

  private def oneValue(value: Any): ColumnStatistics = ColumnStatistics(
    bounds = Option(value).map(v => (v, v)),
    exact = true,
    nullCount = Some(if (value == null) 1L else 0L),
    nanSeen = false,
    empty = value == null,
    settingsDependent = false)
}
