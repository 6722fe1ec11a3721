package io.pyzorder.index.collect

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow, JoinedRow}

/**
 * Computes the values of expressions for the rows of one file. If an expression fails for a row,
 * the file gets no statistics for the expression and is never skipped because of it. A query that
 * evaluates the expression for this row therefore fails as it would without an index.
 */
private[collect] final class ExpressionValues(expressions: Seq[Expression]) {

  private val each = expressions.toArray
  private val failed = new Array[Boolean](each.length)
  private val values = new GenericInternalRow(each.length)
  private val joined = new JoinedRow

  /** The row, followed by the value of each expression. The result is reused for the next row. */
  def after(row: InternalRow): InternalRow =
    if (each.isEmpty) row
    else {
      each.indices.foreach(i => values.update(i, value(i, row)))
      joined(row, values)
    }

  /** Whether expression i has failed for any row. */
  def hasFailed(i: Int): Boolean = failed(i)

  private def value(i: Int, row: InternalRow): Any =
    if (failed(i)) null
    else {
      try each(i).eval(row)
      catch {
        case NonFatal(_) | _: StackOverflowError =>
          failed(i) = true
          null
      }
    }
}
