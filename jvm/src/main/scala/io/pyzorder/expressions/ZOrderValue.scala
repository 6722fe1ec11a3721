package io.pyzorder.expressions

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.expressions.codegen.{
  CodeGenerator, CodegenContext, ExprCode, FalseLiteral
}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{BinaryType, DataType}

/**
 * `zorder_value(a, …)` returns the z-value of the direct method: the 64 ordered bits of each
 * argument, interleaved. The result is a BINARY of 8 bytes per argument, but at most 1024 bytes in
 * total. Sorting rows by this value arranges them in z-order. An argument may have any type whose
 * values have an order. Nulls sort first.
 */
case class ZOrderValue(children: Seq[Expression]) extends Expression {

  override def dataType: DataType = BinaryType

  override def nullable: Boolean = false

  override def foldable: Boolean = children.forall(_.foldable)

  override def prettyName: String = "zorder_value"

  override def checkInputDataTypes(): TypeCheckResult = {
    val refused = children.map(_.dataType).filterNot(OrderedBytes.supports)
    if (children.isEmpty) {
      TypeCheckResult.TypeCheckFailure(s"$prettyName needs at least one argument")
    } else if (refused.nonEmpty) {
      TypeCheckResult.TypeCheckFailure(
        s"$prettyName takes numbers, strings, BINARY values, booleans, dates, times and " +
          s"intervals, not ${refused.head.sql}")
    } else {
      TypeCheckResult.TypeCheckSuccess
    }
  }

  override def eval(input: InternalRow): Any = {
    val columns = new Array[Long](children.length)
    var i = 0
    while (i < columns.length) {
      val child = children(i)
      columns(i) = OrderedBytes.of(child.eval(input), child.dataType)
      i += 1
    }
    InterleaveBits.bytes(columns)
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val columns = ctx.freshName("columns")
    val fill = children.zipWithIndex.map { case (child, i) =>
      val c = child.genCode(ctx)
      val bits = OrderedBytesCode.of(c.value.toString, child.dataType)
      s"${c.code}\n$columns[$i] = ${c.isNull} ? 0L : $bits;"
    }
    val filled = ctx.splitExpressionsWithCurrentInputs(
      fill, "zorderValue", extraArguments = Seq("long[]" -> columns))
    ev.copy(
      code = code"""
        long[] $columns = new long[${children.length}];
        $filled
        ${CodeGenerator.javaType(dataType)} ${ev.value} =
          io.pyzorder.expressions.InterleaveBits.bytes($columns);""",
      isNull = FalseLiteral)
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): Expression = copy(children = newChildren)
}
