package io.pyzorder.metadataonly

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Count, Max, Min}
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.{DataType, DoubleType, FloatType, LongType}

import io.pyzorder.skipping.files.{IndexedStatistics, KnownFile}
import io.pyzorder.skipping.predicate.FilterColumn

/**
 * An aggregate function that can be computed from the index for all rows of a file. Spark's
 * aggregation buffer for the function has a single field. After all rows have been aggregated, the
 * value of that field is the function's result.
 */
sealed abstract class IndexedAggregate {

  /** The type of the buffer. */
  def dataType: DataType

  /** The buffer's initial value. */
  def initial: Any

  /**
   * The buffer's value after aggregating all rows of a file, or None if the index does not contain
   * the exact value.
   *
   * @param partition the values of the file's partition columns
   */
  def of(file: KnownFile, partition: InternalRow): Option[Any]

  /** Merges two buffers into one that represents the rows of both. */
  def merge(a: Any, b: Any): Any
}

object IndexedAggregate {

  /** Converts an aggregate over a scan. Returns None if the index can never provide the result. */
  def of(aggregate: AggregateExpression, scan: IndexedScan): Option[IndexedAggregate] =
    if (aggregate.isDistinct || aggregate.filter.isDefined) None
    else aggregate.aggregateFunction match {
      case Count(Seq(Literal(value, _))) if value != null => Some(CountRows)
      case Count(Seq(child)) =>
        scan.column(child).map(CountValues(_))
          .orElse(scan.partitionColumn(child).map(CountPartitionValues(_)))
      case Min(child) => extreme(child, least = true, scan)
      case Max(child) => extreme(child, least = false, scan)
      case _ => None
    }

  private def extreme(
      child: Expression,
      least: Boolean,
      scan: IndexedScan): Option[IndexedAggregate] =
    scan.column(child).map(Extreme(_, least)).orElse {
      scan.partitionColumn(child).collect {
        case i if FilterColumn.isOrdered(child.dataType) && !isFloating(child.dataType) =>
          PartitionExtreme(i, child.dataType, least)
      }
    }

  /** `count(*)`, or `count` of any other non-null literal: the number of rows. */
  case object CountRows extends Counting {
    override def of(file: KnownFile, partition: InternalRow): Option[Any] = Some(file.numRecords)
    override def toString: String = "count(*)"
  }

  /**
   * `count(c)`: the number of rows minus the number of nulls, which must be known. NaN is counted.
   */
  final case class CountValues(column: FilterColumn) extends Counting {
    override def of(file: KnownFile, partition: InternalRow): Option[Any] =
      file.facts(column).map(_.nullCount(file.entry)).collect {
        case nulls if nulls >= 0 && nulls <= file.numRecords => file.numRecords - nulls
      }
    override def toString: String = s"count(${column.sql("")})"
  }

  /**
   * `count(p)`, where `p` is a partition column, which has the same value in all rows of a file.
   */
  final case class CountPartitionValues(ordinal: Int) extends Counting {
    override def of(file: KnownFile, partition: InternalRow): Option[Any] =
      Some(if (partition.isNullAt(ordinal)) 0L else file.numRecords)
  }

  sealed abstract class Counting extends IndexedAggregate {
    override def dataType: DataType = LongType
    override def initial: Any = 0L
    override def merge(a: Any, b: Any): Any = a.asInstanceOf[Long] + b.asInstanceOf[Long]
  }

  /**
   * `min(c)` and `max(c)`. The index provides the result for a file only if the bound is a value
   * that this scan reads from the file. For a floating-point column, files that may contain NaN are
   * still read, because NaN is greater than any bound. Files with a bound of zero are also read,
   * because the order of the rows determines whether Spark returns -0.0 or 0.0. Columns of type
   * CHAR and columns with a collation have no bounds.
   */
  final case class Extreme(column: FilterColumn, least: Boolean) extends Least(least) {
    override def dataType: DataType = column.dataType
    override def of(file: KnownFile, partition: InternalRow): Option[Any] =
      file.facts(column).flatMap(valueOf(_, file.entry))

    override def toString: String = s"${if (least) "min" else "max"}(${column.sql("")})"

    private def valueOf(facts: IndexedStatistics, entry: Int): Option[Any] =
      if (facts.nanSeen(entry)) None
      else if (!facts.mayHaveValue(entry)) Some(null)
      else if (!facts.exact(entry)) None
      else Some(if (least) facts.min(entry) else facts.max(entry)).filterNot(isZero)
  }

  /**
   * `min(p)` and `max(p)`, where `p` is a partition column. `of` is never called for a file without
   * rows.
   */
  final case class PartitionExtreme(ordinal: Int, dataType: DataType, least: Boolean)
      extends Least(least) {
    override def of(file: KnownFile, partition: InternalRow): Option[Any] =
      Some(if (partition.isNullAt(ordinal)) null else partition.get(ordinal, dataType))
  }

  /** Keeps the least or the greatest value so far, or null if there has been no value. */
  sealed abstract class Least(least: Boolean) extends IndexedAggregate {
    override def initial: Any = null
    override def merge(a: Any, b: Any): Any =
      if (a == null) b
      else if (b == null) a
      else if (ordering.lteq(a, b) == least) a
      else b
    private lazy val ordering: Ordering[Any] = TypeUtils.getInterpretedOrdering(dataType)
  }

  private[metadataonly] def isFloating(dataType: DataType): Boolean =
    dataType == FloatType || dataType == DoubleType

  private def isZero(value: Any): Boolean = value match {
    case d: Double => d == 0.0
    case f: Float => f == 0.0f
    case _ => false
  }
}
