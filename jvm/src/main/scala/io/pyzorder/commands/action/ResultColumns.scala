package io.pyzorder.commands.action

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * The columns of a statement's result. Each has a comment, which clients see and which the
 * reference of the statements is made of.
 */
final class ResultColumns private (val schema: StructType) {

  /** One more column, which may be null. */
  def add(name: String, dataType: DataType, comment: String): ResultColumns =
    new ResultColumns(schema.add(name, dataType, nullable = true, comment))

  /** One more column, which never is null. */
  def always(name: String, dataType: DataType, comment: String): ResultColumns =
    new ResultColumns(schema.add(name, dataType, nullable = false, comment))

  /** The output of a command. */
  def attributes: Seq[Attribute] = DataTypeUtils.toAttributes(schema)
}

object ResultColumns {
  val none: ResultColumns = new ResultColumns(new StructType())
}
