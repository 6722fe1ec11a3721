package io.pyzorder.expressions

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{DataType, IntegerType}

/**
 * The range id of `child` among `boundaries`, as an INT between 0 (for null) and the number of
 * boundaries plus 1. The result is never null. This is not a SQL function. OPTIMIZE computes the
 * same ids with RangeIdsExpression.
 */
case class RangeIdOf(child: Expression, boundaries: Boundaries) extends UnaryExpression {

  override def dataType: DataType = IntegerType

  override def nullable: Boolean = false

  override def checkInputDataTypes(): TypeCheckResult = {
    if (child.dataType == boundaries.dataType) TypeCheckResult.TypeCheckSuccess
    else TypeCheckResult.TypeCheckFailure(
      s"boundaries of type ${boundaries.dataType.sql} cannot rank values of type " +
        s"${child.dataType.sql}")
  }

  override def eval(input: InternalRow): Any = boundaries.rangeId(child.eval(input))

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val c = child.genCode(ctx)
    val held = ctx.addReferenceObj("boundaries", boundaries)
    val id = OrderedBytesCode.rangeId(held, c.value.toString, child.dataType)
    ev.copy(
      code = code"""
        ${c.code}
        int ${ev.value} = ${c.isNull} ? 0 : $id;""",
      isNull = FalseLiteral)
  }

  override protected def withNewChildInternal(newChild: Expression): Expression =
    copy(child = newChild)
}
