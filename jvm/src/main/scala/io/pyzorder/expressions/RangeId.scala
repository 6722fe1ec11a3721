package io.pyzorder.expressions

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.{TypeCheckResult, TypeCoercion}
import org.apache.spark.sql.catalyst.expressions.{
  BinaryExpression, Expression, ImplicitCastInputTypes
}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{ArrayType, DataType, IntegerType}

/**
 * `range_id(value, boundaries)` returns the rank of a value among boundaries as an INT: 0 for a
 * null value, otherwise 1 + the number of distinct boundaries <= the value. The array may be in any
 * order and may contain duplicates and nulls. If the array itself is null, the result is null.
 * Constant boundaries are sorted once. Boundaries that are not constant are sorted for each row.
 */
case class RangeId(left: Expression, right: Expression)
    extends BinaryExpression with ImplicitCastInputTypes {

  @transient private lazy val constant: Boundaries = boundariesOf(right.eval())

  override def dataType: DataType = IntegerType

  override def nullable: Boolean = right.nullable

  override def prettyName: String = "range_id"

  override def inputTypes: Seq[shim.AbstractDataType] = (left.dataType, right.dataType) match {
    case (value, ArrayType(element, containsNull)) if value != element =>
      RangeId.commonType(value, element)
        .map(common => Seq(common, ArrayType(common, containsNull)))
        .getOrElse(Nil)
    case _ => Nil
  }

  override def checkInputDataTypes(): TypeCheckResult = (left.dataType, right.dataType) match {
    case (value, ArrayType(element, _)) if value == element && OrderedBytes.supports(value) =>
      TypeCheckResult.TypeCheckSuccess
    case (value, boundaries) =>
      TypeCheckResult.TypeCheckFailure(
        s"$prettyName takes a value of an ordered type and an array of values of that type, " +
          s"not ${value.sql} and ${boundaries.sql}")
  }

  override def eval(input: InternalRow): Any = {
    val boundaries = if (right.foldable) constant else boundariesOf(right.eval(input))
    if (boundaries == null) null else boundaries.rangeId(left.eval(input))
  }

  /**
   * Creates boundaries from the elements of an array, which may be in any order. Returns null for a
   * null array.
   */
  def boundariesOf(array: Any): Boundaries = {
    if (array == null) null
    else {
      val elementType = left.dataType
      val values = array.asInstanceOf[ArrayData].toSeq[Any](elementType).iterator
      Boundaries.fromValues(elementType, values)
    }
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val value = left.genCode(ctx)
    val boundaries = ctx.freshName("boundaries")
    val javaClass = classOf[Boundaries].getName
    val found = if (right.foldable) {
      val held = ctx.addReferenceObj("boundaries", constant, javaClass)
      code"$javaClass $boundaries = $held;"
    } else {
      val array = right.genCode(ctx)
      val self = ctx.addReferenceObj("rangeId", this)
      code"""
        ${array.code}
        $javaClass $boundaries = ${array.isNull} ? null : $self.boundariesOf(${array.value});"""
    }
    val id = OrderedBytesCode.rangeId(boundaries, value.value.toString, left.dataType)
    ev.copy(code = code"""
      ${value.code}
      $found
      boolean ${ev.isNull} = $boundaries == null;
      int ${ev.value} = ${ev.isNull} || ${value.isNull} ? 0 : $id;""")
  }

  override protected def withNewChildrenInternal(
      newLeft: Expression,
      newRight: Expression): Expression =
    copy(left = newLeft, right = newRight)
}

object RangeId {

  /**
   * The type that the value and the boundaries are cast to: the narrowest type that can represent
   * both. Numbers are never cast to strings.
   */
  private def commonType(value: DataType, element: DataType): Option[DataType] =
    (shim.isString(value), shim.isString(element)) match {
      case (true, true) => Some(value)
      case (false, false) => TypeCoercion.findWiderTypeForTwo(value, element)
      case _ => None
    }
}
