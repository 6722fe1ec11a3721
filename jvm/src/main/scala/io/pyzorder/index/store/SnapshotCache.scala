package io.pyzorder.index.store

import com.google.common.cache.{Cache, CacheBuilder, Weigher}
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.ZOrderConf
import io.pyzorder.index.memory.IndexSnapshot

/**
 * A cache for the snapshots loaded on this driver. It limits their total size. The key is the data
 * file, whose name contains a random id, so a recreated table never matches a snapshot of its
 * former incarnation.
 */
private[index] object SnapshotCache {

  private type Key = (String, String)

  private var limit: Long = 0L

  private var cache: Cache[Key, IndexSnapshot] = _

  /** Returns the cached snapshot, or else the snapshot from `load`, which is then cached. */
  def get(session: shim.SparkSession, ref: SnapshotRef)(
      load: => Option[IndexSnapshot]): Option[IndexSnapshot] = {
    val snapshots = current(ZOrderConf.indexCacheSize.get(session.sessionState.conf))
    Option(snapshots.getIfPresent(keyOf(ref))).orElse {
      val loaded = load
      loaded.foreach(snapshots.put(keyOf(ref), _))
      loaded
    }
  }

  /** Removes a snapshot. The next `get` loads it again. */
  def remove(ref: SnapshotRef): Unit = synchronized {
    if (cache != null) cache.invalidate(keyOf(ref))
  }

  /** Recomputes the weight of a snapshot that has grown. */
  def grown(ref: SnapshotRef): Unit = synchronized {
    if (cache != null) {
      Option(cache.getIfPresent(keyOf(ref))).foreach(cache.put(keyOf(ref), _))
    }
  }

  private def keyOf(ref: SnapshotRef): Key = (ref.folder.root.toString, ref.file)

  /** The cache for this limit. Changing the limit clears the cache. */
  private def current(wanted: Long): Cache[Key, IndexSnapshot] = synchronized {
    if (cache == null || limit != wanted) {
      limit = wanted
      cache = CacheBuilder.newBuilder()
        .concurrencyLevel(1) // Guava divides a cache's limit among its internal segments
        .maximumWeight(math.max(1L, wanted / WeightUnit))
        .weigher[Key, IndexSnapshot](new Weigher[Key, IndexSnapshot] {
          override def weigh(key: Key, snapshot: IndexSnapshot): Int =
            math.min(Int.MaxValue.toLong, snapshot.estimatedBytes / WeightUnit + 1).toInt
        })
        .build[Key, IndexSnapshot]()
    }
    cache
  }

  /** Weights are in KiB because they must fit in an Int. */
  private val WeightUnit = 1024L
}
