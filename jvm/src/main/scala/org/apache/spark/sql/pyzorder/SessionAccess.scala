package org.apache.spark.sql.pyzorder

/** What Spark's sessions keep to their own packages. */
object SessionAccess {

  /** A session of its own with the same catalog, temporary views and settings. */
  def cloned(session: shim.SparkSession): shim.SparkSession = session.cloneSession()

  /** Runs `body` with the session as the active one. */
  def withActive[T](session: shim.SparkSession)(body: => T): T = session.withActive(body)
}
