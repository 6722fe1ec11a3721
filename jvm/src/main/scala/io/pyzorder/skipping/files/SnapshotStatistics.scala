package io.pyzorder.skipping.files

import scala.collection.mutable

import org.apache.spark.sql.types.StructType

import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.skipping.predicate.FilterColumn

/** How a scan reads columns: what decides which of an index's statistics are true for it. */
final case class ColumnReading(dataSchema: StructType, caseSensitive: Boolean, temporal: String)

/** A snapshot's columns as one scan may use them. */
final class SnapshotStatistics(snapshot: IndexSnapshot, reading: ColumnReading)
    extends (FilterColumn => Option[IndexedStatistics]) {

  private val asked = mutable.HashMap.empty[FilterColumn, Option[IndexedStatistics]]

  /** The column's statistics, its functions aside; None: none, or not as the scan reads it. */
  override def apply(column: FilterColumn): Option[IndexedStatistics] =
    asked.getOrElseUpdate(column,
      snapshot.columnFor(reading.dataSchema, column.path, reading.caseSensitive)
        .filter(_.dataType == column.dataType)
        .map(new IndexedStatistics(snapshot, _, reading.temporal)))

  /** Whether there should be statistics, without loading them. */
  def has(column: FilterColumn): Boolean =
    snapshot.typeFor(reading.dataSchema, column.path, reading.caseSensitive)
      .contains(column.dataType)
}
