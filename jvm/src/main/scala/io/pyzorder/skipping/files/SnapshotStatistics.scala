package io.pyzorder.skipping.files

import scala.collection.concurrent.TrieMap

import org.apache.spark.sql.types.StructType

import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.model.{ExpressionColumn, IndexedColumn}
import io.pyzorder.skipping.predicate.FilterColumn

/**
 * How a scan reads columns. This determines which statistics in an index are valid for the scan.
 *
 * @param temporal   the temporal part of the scan's ReadSettings
 * @param evaluation the session's EvaluationSettings
 * @param sketched   whether to use sketches
 */
final case class ColumnReading(
    dataSchema: StructType,
    caseSensitive: Boolean,
    temporal: String,
    evaluation: String,
    sketched: Boolean = true)

/** The subset of a snapshot's column statistics that is valid for one scan. */
final class SnapshotStatistics(snapshot: IndexSnapshot, reading: ColumnReading)
    extends (FilterColumn => Option[IndexedStatistics]) {

  private val asked = TrieMap.empty[FilterColumn, Option[IndexedStatistics]]

  /**
   * The statistics of the column itself, even if `column` is a function of it. None if the index
   * has no statistics for the column, or if the scan reads the column as a type other than the one
   * in the index.
   */
  override def apply(column: FilterColumn): Option[IndexedStatistics] =
    asked.getOrElseUpdate(column,
      for {
        indexed <- find(column)
        arrays <- snapshot.columnFor(reading.dataSchema, column.path, reading.caseSensitive)
      } yield new IndexedStatistics(snapshot, indexed, arrays, reading))

  /**
   * Whether the index has statistics for the column and this scan may use them. Does not load them.
   */
  def has(column: FilterColumn): Boolean = find(column).isDefined

  /** Whether a test that these statistics have been bound to may use sketches. */
  def useSketches: Boolean = asked.values.exists(_.exists(_.useSketches))

  private def find(column: FilterColumn): Option[IndexedColumn] =
    snapshot.indexedFor(reading.dataSchema, column.path, reading.caseSensitive)
      .filter(_.dataType == column.dataType)
      .filter(ExpressionColumn.unapply(_).forall(_.settings == reading.evaluation))
}
