package org.apache.spark.sql.pyzorder

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CollationFactory
import org.apache.spark.sql.types.{DataType, StringType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * Gives common names to types and methods that differ between Spark versions, and exposes a few
 * members that are private to Spark's packages. This file is for Spark 4, where SparkSession is an
 * abstract class with a classic and a Spark Connect implementation. Only the classic one provides
 * the session state and the SparkContext.
 */
object shim {

  /**
   * The session class that provides the session catalog, the session state and the SparkContext.
   */
  type SparkSession = org.apache.spark.sql.classic.SparkSession

  type DataFrame = org.apache.spark.sql.classic.DataFrame

  /** Creates a DataFrame from a logical plan, which need not be analyzed. */
  def dataFrame(session: SparkSession, plan: LogicalPlan): DataFrame =
    org.apache.spark.sql.classic.Dataset.ofRows(session, plan)

  /** Adds a rule that runs before Spark resolves table names. */
  def injectEarlyRule(
      extensions: SparkSessionExtensions,
      rule: SparkSession => Rule[LogicalPlan]): Unit =
    extensions.injectHintResolutionRule(session => rule(session.asInstanceOf[SparkSession]))

  /** Whether `dataType` is a string type with a known order, that is, with a known collation. */
  def isString(dataType: DataType): Boolean = dataType match {
    case s: StringType => s.collationId >= 0
    case _ => false
  }

  /** Compares two strings by their UTF-8 bytes, which are treated as unsigned. */
  def compareBytes(a: UTF8String, b: UTF8String): Int = a.binaryCompare(b)

  /** Whether strings of `dataType` are ordered by their UTF-8 bytes. */
  def isByteOrderedString(dataType: DataType): Boolean = dataType match {
    case s: StringType => s.isUTF8BinaryCollation
    case _ => false
  }

  /**
   * The string's sort key under the collation of `dataType`. Compared as unsigned bytes, the keys
   * sort like the strings.
   */
  def collationKey(value: UTF8String, dataType: DataType): Array[Byte] =
    CollationFactory.getCollationKeyBytes(value, dataType.asInstanceOf[StringType].collationId)

  /** Java code that computes `collationKey` for the variable `value`. */
  def collationKeyCode(value: String, dataType: DataType): String = {
    val id = dataType.asInstanceOf[StringType].collationId
    s"org.apache.spark.sql.catalyst.util.CollationFactory.getCollationKeyBytes($value, $id)"
  }

  /** The element type of an expression's `inputTypes`. */
  type AbstractDataType = org.apache.spark.sql.types.AbstractDataType
}
