package io.pyzorder.skipping.predicate

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression

/**
 * Evaluates a predicate on one column for each of the column's values, in files for which the index
 * lists these values. The value in each row of such a file is one of the list, or null if the
 * column has nulls. If the predicate is TRUE for none of them, no row of the file matches. If
 * evaluation fails for one of them, the file is kept, because the query may have to raise the
 * error. ConstantFileFilter explains which predicates may be evaluated.
 *
 * @param column    the referenced column, not a function of it
 * @param predicate the predicate, in which the column is BoundReference 0
 */
final case class ListedValuesFilter(column: FilterColumn, predicate: Expression)
    extends IndexFilter {

  override private[skipping] def bound(
      facts: FilterColumn => Option[ColumnStatisticsView]): Option[FileTest] =
    facts(column).flatMap { known =>
      known.someValue(this, mayBeTrue).map { listed =>
        lazy val matchesNull = mayBeTrue(null)
        new FileTest {
          override def mayMatch(file: Int): Boolean =
            listed.mayMatch(file) || known.mayBeNull(file) && matchesNull
        }
      }
    }

  private def mayBeTrue(value: Any): Boolean =
    try predicate.eval(InternalRow(value)) == true
    catch { case NonFatal(_) => true }

  override def columns: Seq[FilterColumn] = Seq(column)

  /** Nothing, because the filter refines other filters for the same rows. */
  override def size: Int = 0

  override def needsLists: Boolean = true

  override def toString: String = "true"
}

object ListedValuesFilter {

  /** The filter for a predicate; None if it must not be evaluated or references other columns. */
  def of(predicate: Expression): Option[ListedValuesFilter] =
    if (predicate.references.size > 1) None
    else ConstantFileFilter.of(predicate).collect { case ConstantFileFilter(Seq(column), bound) =>
      ListedValuesFilter(column, bound)
    }
}
