package io.pyzorder.skipping.files

import java.util.Arrays

import scala.collection.mutable

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.execution.datasources.{FileIndex, FileStatusWithMetadata}

/**
 * For each file of a listing, the position of its entry in an index snapshot. Each position is
 * looked up only once, because hashing a file's path takes longer than evaluating the file. The
 * positions are cached for as long as the listing exists.
 *
 * A listing returns the same FileStatus objects until it is refreshed. A partition's files are
 * therefore recognized by object identity, so two versions of a file are never confused.
 */
private[skipping] final class MatchedListing {
  import MatchedListing._

  private val snapshots = mutable.HashMap.empty[String, OfSnapshot]

  /**
   * The position of each file's entry in the snapshot, or -1 if the file has no entry.
   *
   * @param table    identifies the snapshot's table and the read settings on which entries depend
   * @param snapshot the snapshot's name, unique within the table
   * @param files    the files of one partition
   * @param find     finds the position of the i-th file's entry
   */
  def entries(
      table: String,
      snapshot: String,
      files: IndexedSeq[FileStatusWithMetadata])(find: Int => Int): Array[Int] =
    synchronized {
      if (files.isEmpty) Array.emptyIntArray
      else {
        val known = snapshots.get(table).filter(_.snapshot == snapshot).getOrElse {
          val made = new OfSnapshot(snapshot)
          snapshots.put(table, made)
          made
        }
        val first = files.head.fileStatus.getPath
        known.partitions.get(first).filter(_.isOf(files)).map(_.entries).getOrElse {
          val found = new Array[Int](files.length)
          Arrays.parallelSetAll(found, (i: Int) => find(i))
          known.partitions.put(first, new Partition(files, found))
          found
        }
      }
    }
}

private[skipping] object MatchedListing {

  private final class OfSnapshot(val snapshot: String) {
    val partitions = mutable.HashMap.empty[Path, Partition] // keyed by the first file's path
  }

  private final class Partition(
      files: IndexedSeq[FileStatusWithMetadata],
      val entries: Array[Int]) {
    def isOf(others: IndexedSeq[FileStatusWithMetadata]): Boolean = (others eq files) || {
      var i = if (others.length == files.length) 0 else -1
      while (i >= 0 && i < files.length) {
        i = if (files(i).fileStatus eq others(i).fileStatus) i + 1 else -1
      }
      i >= 0
    }
  }

  /**
   * The positions found for each listing, keyed by the listing's identity and dropped together with
   * the listing. No value may refer to its listing, because the listing would then never be
   * dropped.
   */
  private val cache: Cache[FileIndex, MatchedListing] =
    CacheBuilder.newBuilder().weakKeys().build[FileIndex, MatchedListing]()

  /** The cached positions for this listing. */
  def of(listing: FileIndex): MatchedListing = cache.get(listing, () => new MatchedListing)
}
