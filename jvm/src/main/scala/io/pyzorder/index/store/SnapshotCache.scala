package io.pyzorder.index.store

import com.google.common.cache.{Cache, CacheBuilder, Weigher}
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.ZOrderConf
import io.pyzorder.index.memory.IndexSnapshot

/**
 * The snapshots loaded on this driver, bounded by the bytes they take. The key is the data file:
 * its name holds a random id, so that a table made anew never meets the snapshot of its former
 * life.
 */
private[index] object SnapshotCache {

  private type Key = (String, String)

  private var limit: Long = 0L

  private var cache: Cache[Key, IndexSnapshot] = _

  /** The loaded snapshot, else what `load` gives, which is kept when it is a snapshot. */
  def get(session: shim.SparkSession, ref: SnapshotRef)(
      load: => Option[IndexSnapshot]): Option[IndexSnapshot] = {
    val snapshots = current(ZOrderConf.indexCacheSize.get(session.sessionState.conf))
    Option(snapshots.getIfPresent(keyOf(ref))).orElse {
      val loaded = load
      loaded.foreach(snapshots.put(keyOf(ref), _))
      loaded
    }
  }

  /** The snapshot takes more room than before: weigh it again. */
  def grown(ref: SnapshotRef): Unit = synchronized {
    if (cache != null) {
      Option(cache.getIfPresent(keyOf(ref))).foreach(cache.put(keyOf(ref), _))
    }
  }

  private def keyOf(ref: SnapshotRef): Key = (ref.folder.root.toString, ref.file)

  /** A changed limit begins with an empty cache. */
  private def current(wanted: Long): Cache[Key, IndexSnapshot] = synchronized {
    if (cache == null || limit != wanted) {
      limit = wanted
      cache = CacheBuilder.newBuilder()
        .concurrencyLevel(1) // else an entry may take a quarter of the room at most
        .maximumWeight(math.max(1L, wanted / WeightUnit))
        .weigher[Key, IndexSnapshot](new Weigher[Key, IndexSnapshot] {
          override def weigh(key: Key, snapshot: IndexSnapshot): Int =
            math.min(Int.MaxValue.toLong, snapshot.estimatedBytes / WeightUnit + 1).toInt
        })
        .build[Key, IndexSnapshot]()
    }
    cache
  }

  /** Weights are counted in KiB, for they must fit an Int. */
  private val WeightUnit = 1024L
}
