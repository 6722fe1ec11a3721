package io.pyzorder.expressions

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo}

import io.pyzorder.common.ZOrderErrors

/** The SQL functions that pyzorder registers through `SparkSessionExtensions.injectFunction`. */
object ZOrderFunctions {

  /**
   * What Spark needs to register a function: the name, the description and a builder for the
   * expression.
   */
  type Description = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => Expression)

  /** All functions that pyzorder registers. */
  val all: Seq[Description] = Seq(
    function(
      "interleave_bits",
      classOf[InterleaveBitsExpression],
      "_FUNC_(a, ...) - Interleaves the bits of integers and BINARY values into one BINARY, " +
        "starting with the first argument.",
      InterleaveBitsExpression(_)),
    function(
      "zorder_value",
      classOf[ZOrderValue],
      "_FUNC_(a, ...) - Returns the z-value of its arguments, which may be of any ordered type. " +
        "Sort by this BINARY to cluster rows.",
      ZOrderValue(_)),
    function(
      "range_id",
      classOf[RangeId],
      "_FUNC_(value, boundaries) - Returns the rank of a value in an array of boundaries: 0 for " +
        "null, otherwise 1 + the number of distinct boundaries <= value.",
      {
        case Seq(value, boundaries) => RangeId(value, boundaries)
        case other => throw ZOrderErrors.rangeIdArguments(other.length)
      }))

  private def function(
      name: String,
      expression: Class[_ <: Expression],
      usage: String,
      make: Seq[Expression] => Expression): Description = {
    val info = new ExpressionInfo(expression.getName, null, name, usage, "")
    (FunctionIdentifier(name), info, make)
  }
}
