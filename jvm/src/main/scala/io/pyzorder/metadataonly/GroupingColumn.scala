package io.pyzorder.metadataonly

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.DataType

import io.pyzorder.skipping.files.KnownFile
import io.pyzorder.skipping.predicate.FilterColumn

/**
 * A column of GROUP BY or DISTINCT. If the query has aggregates, the index answers a file only if
 * all of its rows belong to the same group, that is, if every such column has a single value in the
 * file. Without aggregates, one of the columns may have several values, if the index lists them.
 */
sealed abstract class GroupingColumn {

  def dataType: DataType

  /**
   * The value that the column has in all rows of a file, which may be null, or None if the index
   * does not prove that there is only one. Never called for a file without rows.
   *
   * @param partition the values of the file's partition columns
   */
  def of(file: KnownFile, partition: InternalRow): Option[Any]

  /**
   * All values that the column has in the rows of a file, which may include null, or None if the
   * index does not list them. Never called for a file without rows.
   */
  def allOf(file: KnownFile, partition: InternalRow): Option[Seq[Any]] =
    of(file, partition).map(Seq(_))
}

object GroupingColumn {

  /**
   * Converts a grouping expression over a scan. Returns None if the index can never prove that a
   * file has a single value. Spark groups by normalized floating-point numbers, so columns of these
   * types are left to Spark.
   */
  def of(expression: Expression, scan: IndexedScan): Option[GroupingColumn] =
    if (!FilterColumn.isOrdered(expression.dataType) ||
      IndexedAggregate.isFloating(expression.dataType)) None
    else scan.column(expression).map(OfFile(_))
      .orElse(scan.partitionColumn(expression).map(OfPartition(_, expression.dataType)))

  /**
   * A column of the files. Equal bounds prove that all values are equal. In addition, they must be
   * values that this scan reads from the file, because the query returns them.
   */
  final case class OfFile(column: FilterColumn) extends GroupingColumn {
    override def dataType: DataType = column.dataType
    override def of(file: KnownFile, partition: InternalRow): Option[Any] =
      file.facts(column).flatMap { facts =>
        if (!facts.mayHaveValue(file.entry)) Some(null)
        else if (facts.oneValue(file.entry) && facts.exact(file.entry)) Some(facts.min(file.entry))
        else None
      }
    override def allOf(file: KnownFile, partition: InternalRow): Option[Seq[Any]] =
      super.allOf(file, partition).orElse(file.facts(column).flatMap(_.distinct(file.entry)))
  }

  /** A partition column, which has the same value in all rows of a file. */
  final case class OfPartition(ordinal: Int, dataType: DataType) extends GroupingColumn {
    override def of(file: KnownFile, partition: InternalRow): Option[Any] =
      Some(if (partition.isNullAt(ordinal)) null else partition.get(ordinal, dataType))
  }
}
