package org.apache.spark.sql.pyzorder

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.types.{CharType, DataType, StringType, VarcharType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * Gives common names to types and methods that differ between Spark versions, and exposes a few
 * members that are private to Spark's packages. This file is for Spark 3.5.
 */
object shim {

  /**
   * The session class that provides the session catalog, the session state and the SparkContext.
   */
  type SparkSession = org.apache.spark.sql.SparkSession

  type DataFrame = org.apache.spark.sql.DataFrame

  /** Creates a DataFrame from a logical plan, which need not be analyzed. */
  def dataFrame(session: SparkSession, plan: LogicalPlan): DataFrame =
    org.apache.spark.sql.Dataset.ofRows(session, plan)

  /**
   * Adds a rule that runs before Spark resolves table names. Spark 3.5 cannot run a rule at that
   * point, so this method does nothing.
   */
  def injectEarlyRule(
      extensions: SparkSessionExtensions,
      rule: SparkSession => Rule[LogicalPlan]): Unit = ()

  /** Whether `dataType` is a string type with a known order: STRING, CHAR(n) or VARCHAR(n). */
  def isString(dataType: DataType): Boolean = dataType match {
    case StringType | _: CharType | _: VarcharType => true
    case _ => false
  }

  /** Compares two strings by their UTF-8 bytes, which are treated as unsigned. */
  def compareBytes(a: UTF8String, b: UTF8String): Int = a.compareTo(b)

  /**
   * Whether strings of `dataType` are ordered by their UTF-8 bytes. In Spark 3.5, all strings are
   * ordered this way.
   */
  def isByteOrderedString(dataType: DataType): Boolean = isString(dataType)

  /**
   * The string's sort key, which consists of its UTF-8 bytes. Compared as unsigned bytes, the keys
   * sort like the strings.
   */
  def collationKey(value: UTF8String, dataType: DataType): Array[Byte] = value.getBytes

  /** Java code that computes `collationKey` for the variable `value`. */
  def collationKeyCode(value: String, dataType: DataType): String = s"$value.getBytes()"

  /** The element type of an expression's `inputTypes`. */
  type AbstractDataType = org.apache.spark.sql.types.AbstractDataType
}
