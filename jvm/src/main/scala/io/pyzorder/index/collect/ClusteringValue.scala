package io.pyzorder.index.collect

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression, GetStructField}
import org.apache.spark.sql.catalyst.expressions.TryEval
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType

import io.pyzorder.index.model.{ExpressionColumn, IndexedColumn}

/** The values of a clustering column in the rows that are laid out. */
object ClusteringValue {

  /**
   * The value of a column, a struct field or an expression. An expression that fails for a row has
   * the value null for this row, because the value only affects where the row is stored.
   *
   * @param schema the columns of the rows
   * @param input  the value of the top-level column with this name, which `schema` contains
   * @throws io.pyzorder.common.ZOrderException if the session cannot evaluate the expression
   */
  def of(
      session: shim.SparkSession,
      schema: StructType,
      column: IndexedColumn,
      input: String => Expression): Expression = column match {
    case ExpressionColumn(expression) =>
      val resolved = ResolvedExpression.of(session, schema, expression.text, expression.text)
      TryEval(resolved.value.transform { case a: AttributeReference => input(a.name) })
    case IndexedColumn(path, _) =>
      path.tail.foldLeft(input(path.head)) { (parent, name) =>
        val fields = parent.dataType.asInstanceOf[StructType]
        GetStructField(parent, fields.fieldIndex(name), Some(name))
      }
  }
}
