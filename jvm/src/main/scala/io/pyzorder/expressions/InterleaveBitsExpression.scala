package io.pyzorder.expressions

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.expressions.codegen.{
  CodeGenerator, CodegenContext, ExprCode, FalseLiteral
}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types._

/**
 * `interleave_bits(a, …)` interleaves the arguments' unchanged bits, starting with the first
 * argument. An integer contributes as many two's-complement bits as its type has, highest bit
 * first, and a BINARY value contributes its bytes. All arguments are zero-padded on the right to
 * the length of the longest one. A null counts as all zeros. The result is a BINARY. Its length in
 * bytes is the length of the longest argument times the number of arguments, but at most 1024.
 */
case class InterleaveBitsExpression(children: Seq[Expression]) extends Expression {

  override def dataType: DataType = BinaryType

  override def nullable: Boolean = false

  override def foldable: Boolean = children.forall(_.foldable)

  override def prettyName: String = "interleave_bits"

  override def checkInputDataTypes(): TypeCheckResult = {
    val refused = children.map(_.dataType).filter(InterleaveBitsExpression.widthOf(_).isEmpty)
    if (children.isEmpty) {
      TypeCheckResult.TypeCheckFailure(s"$prettyName needs at least one argument")
    } else if (refused.nonEmpty) {
      TypeCheckResult.TypeCheckFailure(
        s"$prettyName takes integers and BINARY values, not ${refused.head.sql}: " +
          "zorder_value takes values of any ordered type")
    } else {
      TypeCheckResult.TypeCheckSuccess
    }
  }

  override def eval(input: InternalRow): Any = {
    val columns = new Array[Array[Byte]](children.length)
    var i = 0
    while (i < columns.length) {
      val child = children(i)
      val value = child.eval(input)
      columns(i) = child.dataType match {
        case BinaryType => value.asInstanceOf[Array[Byte]]
        case t => InterleaveBitsExpression.integerBytes(
            if (value == null) 0L else value.asInstanceOf[Number].longValue,
            InterleaveBitsExpression.widthOf(t).get)
      }
      i += 1
    }
    InterleaveBits.ofBytes(columns)
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val own = "io.pyzorder.expressions.InterleaveBitsExpression"
    val columns = ctx.freshName("columns")
    val fill = children.zipWithIndex.map { case (child, i) =>
      val c = child.genCode(ctx)
      val bytes = child.dataType match {
        case BinaryType => s"${c.isNull} ? null : ${c.value}"
        case t =>
          s"$own.integerBytes(${c.isNull} ? 0L : (long) ${c.value}, " +
            s"${InterleaveBitsExpression.widthOf(t).get})"
      }
      s"${c.code}\n$columns[$i] = $bytes;"
    }
    val filled = ctx.splitExpressionsWithCurrentInputs(
      fill, "interleaveBits", extraArguments = Seq("byte[][]" -> columns))
    ev.copy(
      code = code"""
        byte[][] $columns = new byte[${children.length}][];
        $filled
        ${CodeGenerator.javaType(dataType)} ${ev.value} =
          io.pyzorder.expressions.InterleaveBits.ofBytes($columns);""",
      isNull = FalseLiteral)
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): Expression = copy(children = newChildren)
}

object InterleaveBitsExpression {

  /**
   * The width in bytes of arguments of this type. Returns 0 for BINARY, whose values vary in
   * length, and None if the type is not accepted.
   */
  private[expressions] def widthOf(dataType: DataType): Option[Int] = dataType match {
    case BinaryType => Some(0)
    case ByteType => Some(1)
    case ShortType => Some(2)
    case IntegerType => Some(4)
    case LongType => Some(8)
    case _ => None
  }

  /** The lowest `width` bytes of `value`, highest first. */
  def integerBytes(value: Long, width: Int): Array[Byte] = {
    val bytes = new Array[Byte](width)
    var i = 0
    while (i < width) {
      bytes(i) = (value >>> (8 * (width - 1 - i))).toByte
      i += 1
    }
    bytes
  }
}
