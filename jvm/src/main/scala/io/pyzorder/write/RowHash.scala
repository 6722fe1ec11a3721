package io.pyzorder.write

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeProjection}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.types.{DataType, IntegerType}

/**
 * A hash of all bytes of a row, including the bytes of maps. A retried task may read its rows in a
 * different order, so the choice of a row's file must depend only on the row itself.
 */
case class RowHash(children: Seq[Expression]) extends Expression with CodegenFallback {

  @transient private lazy val row = UnsafeProjection.create(children)

  override def dataType: DataType = IntegerType

  override def nullable: Boolean = false

  override def eval(input: InternalRow): Any = row(input).hashCode

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): Expression = copy(children = newChildren)
}
