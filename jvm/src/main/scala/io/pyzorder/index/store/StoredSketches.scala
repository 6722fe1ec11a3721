package io.pyzorder.index.store

import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.fs.FileSystem

import io.pyzorder.common.ReadFailure
import io.pyzorder.index.model.{FileSketches, IndexedColumn}
import io.pyzorder.index.sketch.{SegmentColumn, Sketches}
import io.pyzorder.storage.TableFolder

/**
 * The sketches of a snapshot's files. If a segment cannot be read, it is ignored from then on, and
 * its files are skipped by bounds alone.
 *
 * Cached snapshots refer to this object, so it does not keep a Hadoop configuration, which would
 * take more memory than the snapshot of a small table.
 *
 * @param warn called with the segment's name and the failure
 */
private[store] final class StoredSketches(
    fileSystem: FileSystem,
    folder: TableFolder,
    segments: Seq[SegmentRef],
    warn: (String, Throwable) => Unit)
    extends Sketches {
  import StoredSketches._

  private val readers =
    segments.map(ref => ref.file -> new SegmentReader(fileSystem, folder, ref)).toMap

  private val unusable = ConcurrentHashMap.newKeySet[String]()

  override def mayHold(
      file: FileSketches,
      column: IndexedColumn,
      hashes: Array[Long]): Boolean = file match {
    case FileSketches.Stored(segment, number) if !unusable.contains(segment) =>
      reading(segment, otherwise = true) { reader =>
        val directory = reader.directory
        number >= directory.numFiles || number < 0 ||
        directory.columns.find(_.column == column).forall(mayHold(reader, _, number, hashes))
      }
    case _ => true
  }

  override def sizeOf(column: IndexedColumn): (Int, Long) = {
    val found = readers.keys.toSeq.flatMap { segment =>
      reading(segment, otherwise = Option.empty[(Int, Long)]) { reader =>
        reader.directory.columns.find(_.column == column).map(own =>
          (own.sketched, (own.starts.last - own.starts.head).toLong))
      }
    }
    (found.map(_._1).sum, found.map(_._2).sum)
  }

  private def reading[T](segment: String, otherwise: T)(read: SegmentReader => T): T =
    try readers.get(segment).fold(otherwise)(read)
    catch {
      case ReadFailure(failure) =>
        if (unusable.add(segment)) warn(segment, failure)
        otherwise
    }

  /** Searches each bucket's block for the hashes that belong to the bucket. */
  private def mayHold(
      reader: SegmentReader,
      column: SegmentColumn,
      file: Int,
      hashes: Array[Long]): Boolean =
    column.bits(file) == 0 || hashes.length > (MostFalse << column.rices(file)) || {
      var found = false
      var from = 0
      while (!found && from < hashes.length) {
        val bucket = column.bucketOf(hashes(from))
        var until = from + 1
        while (until < hashes.length && column.bucketOf(hashes(until)) == bucket) until += 1
        found = column.contains(file, reader.block(column, bucket), hashes, from, until)
        from = until
      }
      found
    }
}

private object StoredSketches {

  /**
   * The maximum number of hashes to look up in a file, as a multiple of 2^rice, which is roughly
   * the average gap between the file's hashes. If there are more hashes, a false positive is so
   * likely that the lookup is not worthwhile.
   */
  private val MostFalse = 4L
}
