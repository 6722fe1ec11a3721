package io.pyzorder.workload

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.internal.SQLConf

import io.pyzorder.common.ZOrderConf

/**
 * The settings for recording, as they were when a query was planned. The recorder looks at the
 * query later, and in another thread. By then, the session may have other settings.
 */
private[workload] object PlannedSettings {

  private val planned: Cache[QueryPlanningTracker, SQLConf] =
    CacheBuilder.newBuilder().weakKeys().build[QueryPlanningTracker, SQLConf]()

  /** Keeps the settings for the query that this thread is planning. */
  def keep(conf: SQLConf): Unit =
    QueryPlanningTracker.get.foreach(query => planned.get(query, () => copyOf(conf)))

  /** The settings that were kept for a query; None if its planning did not keep any. */
  def of(query: QueryPlanningTracker): Option[SQLConf] = Option(planned.getIfPresent(query))

  private def copyOf(conf: SQLConf): SQLConf = {
    val copy = new SQLConf
    Seq(ZOrderConf.workloadRecord, ZOrderConf.indexDenyColumns).map(_.key).filter(conf.contains)
      .foreach(key => copy.setConfString(key, conf.getConfString(key)))
    copy
  }
}
