package org.apache.spark.sql.pyzorder

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * What differs between Spark versions, under one name each, and the few members Spark keeps to its
 * own packages. This file serves Spark 4: it split the session with catalog, state and context from the one Connect shares.
 */
object shim {

  /** The session with catalog, state and context. */
  type SparkSession = org.apache.spark.sql.classic.SparkSession

  type DataFrame = org.apache.spark.sql.classic.DataFrame

  /** A DataFrame of an analyzed or unanalyzed plan. */
  def dataFrame(session: SparkSession, plan: LogicalPlan): DataFrame =
    org.apache.spark.sql.classic.Dataset.ofRows(session, plan)
}
