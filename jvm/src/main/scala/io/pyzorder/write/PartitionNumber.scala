package io.pyzorder.write

import java.util.HashMap

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeProjection}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.types.{DataType, IntegerType}

/**
 * An expression that returns the number assigned to a row's table partition.
 *
 * @param columns the partition columns
 * @param numbers the numbers of the known partitions, from 0
 * @param unseen  how many additional numbers the unknown partitions share. A partition's hash
 *                determines which of these numbers it gets
 */
case class PartitionNumber(
    columns: Seq[Expression],
    numbers: Broadcast[HashMap[InternalRow, Integer]],
    unseen: Int)
    extends Expression with CodegenFallback {

  @transient private lazy val key = UnsafeProjection.create(columns)

  override def children: Seq[Expression] = columns

  override def dataType: DataType = IntegerType

  override def nullable: Boolean = false

  override def eval(row: InternalRow): Any = {
    val partition = key(row)
    val known = numbers.value.get(partition)
    if (known != null) known.intValue
    else numbers.value.size + Math.floorMod(partition.hashCode, unseen)
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): Expression = copy(columns = newChildren)
}
