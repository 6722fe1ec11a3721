package org.apache.spark.sql.pyzorder

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.CollationFactory
import org.apache.spark.sql.types.{DataType, StringType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * What differs between Spark versions, under one name each, and the few members Spark keeps to its
 * own packages. This file serves Spark 4: it split the session with catalog, state and context from
 * the one Connect shares.
 */
object shim {

  /** The session with catalog, state and context. */
  type SparkSession = org.apache.spark.sql.classic.SparkSession

  type DataFrame = org.apache.spark.sql.classic.DataFrame

  /** A DataFrame of an analyzed or unanalyzed plan. */
  def dataFrame(session: SparkSession, plan: LogicalPlan): DataFrame =
    org.apache.spark.sql.classic.Dataset.ofRows(session, plan)

  /** Whether `dataType` holds strings that have an order: of any length and decided collation. */
  def isString(dataType: DataType): Boolean = dataType match {
    case s: StringType => s.collationId >= 0
    case _ => false
  }

  /** The order of their bytes, unsigned. */
  def compareBytes(a: UTF8String, b: UTF8String): Int = a.binaryCompare(b)

  /** Whether `dataType` holds strings ordered by their UTF-8 bytes. */
  def isByteOrderedString(dataType: DataType): Boolean = dataType match {
    case s: StringType => s.isUTF8BinaryCollation
    case _ => false
  }

  /** Bytes that sort unsigned as the strings of `dataType` do: the collation's sort key. */
  def collationKey(value: UTF8String, dataType: DataType): Array[Byte] =
    CollationFactory.getCollationKeyBytes(value, dataType.asInstanceOf[StringType].collationId)

  /** Java for `collationKey` of the variable `value`. */
  def collationKeyCode(value: String, dataType: DataType): String = {
    val id = dataType.asInstanceOf[StringType].collationId
    s"org.apache.spark.sql.catalyst.util.CollationFactory.getCollationKeyBytes($value, $id)"
  }

  /** What `inputTypes` of an expression lists. */
  type AbstractDataType = org.apache.spark.sql.types.AbstractDataType
}
