package io.pyzorder.index.model

import org.apache.spark.sql.types.DataType

/**
 * The indexed column that contains the values of an expression, such as `lower(email)`, or the
 * elements of arrays, `explode(tags)`. It is not a column in the data files. Its path consists of a
 * marker and the fields of this class, so the path contains everything that the values depend on.
 * If any of the fields changes, the result is a different column.
 *
 * @param text     the expression as it was written in CREATE SKIPPING INDEX
 * @param form     what the expression computes from the table's columns; see ExpressionForm
 * @param settings the settings under which the values were computed; see EvaluationSettings
 * @param inputs   the names of the table's columns that the expression reads
 */
final case class ExpressionColumn(
    text: String,
    form: String,
    settings: String,
    inputs: Seq[String]) {

  def indexed(dataType: DataType): IndexedColumn =
    IndexedColumn(Seq(ExpressionColumn.Marker, text, form, settings) ++ inputs, dataType)
}

object ExpressionColumn {

  /** The maximum number of expressions in an index. Each one is resolved on every write. */
  val MaxColumns: Int = 100

  private val Marker = "zorder_expression"

  /** None for a column in the data files and for a column of z-values. */
  def unapply(column: IndexedColumn): Option[ExpressionColumn] = ofPath(column.path)

  def ofPath(path: Seq[String]): Option[ExpressionColumn] = path match {
    case Seq(Marker, text, form, settings, inputs @ _*) if inputs.nonEmpty =>
      Some(ExpressionColumn(text, form, settings, inputs.toList))
    case _ => None
  }

  def matches(column: IndexedColumn): Boolean = unapply(column).isDefined
}
