package org.apache.spark.sql.pyzorder

import org.apache.spark.sql.catalyst.{FunctionIdentifier, TableIdentifier}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * Passes statements to `parse`, and forwards calls to all other methods of Spark 3.5's parser
 * interface to the next parser.
 */
abstract class DelegatingParser(next: ParserInterface) extends ParserInterface {

  /**
   * Parses a statement into a plan. `parseNext` parses text with the next parser and may be called
   * more than once.
   */
  protected def parse(sql: String, parseNext: String => LogicalPlan): LogicalPlan

  override def parsePlan(sqlText: String): LogicalPlan = parse(sqlText, next.parsePlan)

  override def parseQuery(sqlText: String): LogicalPlan = next.parseQuery(sqlText)

  override def parseExpression(sqlText: String): Expression = next.parseExpression(sqlText)

  override def parseTableIdentifier(sqlText: String): TableIdentifier =
    next.parseTableIdentifier(sqlText)

  override def parseFunctionIdentifier(sqlText: String): FunctionIdentifier =
    next.parseFunctionIdentifier(sqlText)

  override def parseMultipartIdentifier(sqlText: String): Seq[String] =
    next.parseMultipartIdentifier(sqlText)

  override def parseTableSchema(sqlText: String): StructType = next.parseTableSchema(sqlText)

  override def parseDataType(sqlText: String): DataType = next.parseDataType(sqlText)
}
