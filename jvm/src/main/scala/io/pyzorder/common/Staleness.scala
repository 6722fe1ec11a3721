package io.pyzorder.common

import org.apache.spark.sql.internal.SQLConf

/**
 * How old a query's information about a table's files may be.
 *
 * @param earliest a time in milliseconds since the epoch. Information from before this time is not
 *                 used. Long.MinValue means that there is no limit, and Long.MaxValue means that
 *                 the query must list the files in the store
 * @param now      the current time. Information with a later timestamp comes from a machine whose
 *                 clock is wrong, and is not used
 */
final case class Staleness(earliest: Long, now: Long) {

  /** Whether the query may use any information that was gathered earlier. */
  def remembers: Boolean = earliest != Long.MaxValue

  /** Whether information from this time may be used. */
  def allows(time: Long): Boolean =
    earliest == Long.MinValue || (time >= earliest && time <= now)
}

object Staleness {

  /** No information gathered earlier may be used: the query must list the files in the store. */
  val none: Staleness = Staleness(Long.MaxValue, Long.MaxValue)

  /** Information of any age may be used. */
  def unbounded: Staleness = Staleness(Long.MinValue, System.currentTimeMillis())

  /** The staleness that the session's settings and the table's properties allow. */
  def of(conf: SQLConf, properties: Map[String, String]): Staleness = {
    if (ZOrderConf.indexTrusted.get(conf, properties)) unbounded
    else {
      val now = System.currentTimeMillis()
      val most = ZOrderConf.indexMaxStaleness.get(conf, properties)
      if (most == 0) none else Staleness(math.max(now - most, 0L), now)
    }
  }
}
