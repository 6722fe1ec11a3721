package org.apache.spark.sql.pyzorder

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.{CharType, DataType, StringType, VarcharType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * What differs between Spark versions, under one name each, and the few members Spark keeps to its
 * own packages. This file serves Spark 3.5.
 */
object shim {

  /** The session with catalog, state and context. */
  type SparkSession = org.apache.spark.sql.SparkSession

  type DataFrame = org.apache.spark.sql.DataFrame

  /** A DataFrame of an analyzed or unanalyzed plan. */
  def dataFrame(session: SparkSession, plan: LogicalPlan): DataFrame =
    org.apache.spark.sql.Dataset.ofRows(session, plan)

  /** Whether `dataType` holds strings that have an order: STRING, CHAR(n), VARCHAR(n). */
  def isString(dataType: DataType): Boolean = dataType match {
    case StringType | _: CharType | _: VarcharType => true
    case _ => false
  }

  /** The order of their bytes, unsigned. */
  def compareBytes(a: UTF8String, b: UTF8String): Int = a.compareTo(b)

  /** Whether `dataType` holds strings ordered by their UTF-8 bytes: all are, in Spark 3.5. */
  def isByteOrderedString(dataType: DataType): Boolean = isString(dataType)

  /** Bytes that sort unsigned as the strings of `dataType` do. */
  def collationKey(value: UTF8String, dataType: DataType): Array[Byte] = value.getBytes

  /** Java for `collationKey` of the variable `value`. */
  def collationKeyCode(value: String, dataType: DataType): String = s"$value.getBytes()"

  /** What `inputTypes` of an expression lists. */
  type AbstractDataType = org.apache.spark.sql.types.AbstractDataType
}
