package org.apache.spark.sql.pyzorder

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

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
}
