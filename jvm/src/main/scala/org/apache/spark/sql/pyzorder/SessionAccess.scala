package org.apache.spark.sql.pyzorder

/** Gives access to SparkSession methods that are private to Spark's packages. */
object SessionAccess {

  /** A new session with the same catalog, temporary views and settings. */
  def cloned(session: shim.SparkSession): shim.SparkSession = session.cloneSession()

  /** Runs `body` with `session` as the active session. */
  def withActive[T](session: shim.SparkSession)(body: => T): T = session.withActive(body)
}
