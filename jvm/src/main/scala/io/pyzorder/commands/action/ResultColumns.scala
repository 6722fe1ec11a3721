package io.pyzorder.commands.action

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * The columns of a statement's result. Each column has a comment. Clients show these comments, and
 * the list of results in the documentation is generated from them.
 */
final class ResultColumns private (val schema: StructType) {

  /** Adds a nullable column. */
  def add(name: String, dataType: DataType, comment: String): ResultColumns =
    new ResultColumns(schema.add(name, dataType, nullable = true, comment))

  /** Adds a column that is never null. */
  def always(name: String, dataType: DataType, comment: String): ResultColumns =
    new ResultColumns(schema.add(name, dataType, nullable = false, comment))

  /** The columns as the output of a command. */
  def attributes: Seq[Attribute] = DataTypeUtils.toAttributes(schema)
}

object ResultColumns {
  val none: ResultColumns = new ResultColumns(new StructType())
}
