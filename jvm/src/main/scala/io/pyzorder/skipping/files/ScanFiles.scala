package io.pyzorder.skipping.files

import com.google.common.cache.{Cache, CacheBuilder}

/**
 * The files of a plan's scans, in one or more states of the tables. Each scan is evaluated only
 * once in each state. All key ranges that are derived from the scan or may be added to it use this
 * evaluation, even if adaptive execution plans the rest of the query again. The number of
 * evaluations is therefore proportional to the number of scans, however many joins connect them.
 * The effect of ranges is determined from the remaining files alone.
 *
 * The results for large tables need a lot of memory. If memory runs low, they are dropped and, if
 * necessary, computed again.
 */
private[files] final class ScanFiles {
  import ScanFiles._

  private val ofScans = newCache()
  private val ofRanges = newCache()

  /** The files of a scan without ranges. */
  def evaluated(scan: FilteredScan, state: AnyRef)(evaluate: => Files): Files =
    once(ofScans, scan, state)(evaluate)

  /** The files of a scan with ranges. */
  def narrowed(scan: FilteredScan, state: AnyRef)(narrow: => Files): Files =
    once(ofRanges, scan, state)(narrow)

  /** The number of evaluations so far, which tests compare with the number of scans. */
  def evaluations: Long = ofScans.stats.missCount
}

private[files] object ScanFiles {

  private type Files = IndexedSeq[ExaminedFile]
  private type Key = (FilteredScan, AnyRef)

  /** The state that the execution of the plan reads. */
  val Pinned: AnyRef = new Object

  private def newCache(): Cache[Key, Files] =
    CacheBuilder.newBuilder().softValues().recordStats().build[Key, Files]()

  private def once(known: Cache[Key, Files], scan: FilteredScan, state: AnyRef)(
      find: => Files): Files =
    Option(known.getIfPresent((scan, state))).getOrElse {
      val files = find
      known.put((scan, state), files)
      files
    }
}
