package io.pyzorder.index.store

import java.util.concurrent.ConcurrentHashMap

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.fs.{FileSystem, Path}

import io.pyzorder.common.ReadFailure
import io.pyzorder.index.model.{FileSketches, IndexedColumn}
import io.pyzorder.index.sketch.{HashColumn, ListBlock, ListColumn, SegmentColumn, Sketches}
import io.pyzorder.index.sketch.{SketchSize, ValueBytes}
import io.pyzorder.storage.TableFolder

/**
 * The sketches of a snapshot's files. If a segment cannot be read, it is ignored from then on, and
 * its files are skipped by bounds alone.
 *
 * Cached snapshots refer to this object, so it does not keep a Hadoop configuration, which would
 * take more memory than the snapshot of a small table.
 *
 * @param sketched the names of the columns that may have lists
 * @param warn     called with the segment's name and the failure
 */
private[store] final class StoredSketches(
    fileSystem: FileSystem,
    folder: TableFolder,
    segments: Seq[SegmentRef],
    sketched: Set[String],
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
        find(reader, column).forall {
          case own: HashColumn => mayHold(reader, own, number, hashes)
          case own: ListColumn =>
            val block = reader.lists(own)
            own.containsAny(number, block, id => Sketches.contains(hashes, block.hashes(id)))
        }
      }
    case _ => true
  }

  /** A segment's lists are read, and their values tested, when its first file is tested. */
  override def someValue(
      column: IndexedColumn,
      test: AnyRef,
      passes: Any => Boolean): Option[FileSketches => Boolean] =
    ofLists(column) { (segment, lists) =>
      val path = new Path(folder.index, segment).toString
      val passing = tested.get((path, column, test), () => lists.values.map(passes))
      number => lists.column.containsAny(number, lists.block, passing(_))
    }.map(_.andThen(_.getOrElse(true)))

  override def valuesOf(column: IndexedColumn): Option[FileSketches => Option[Seq[Any]]] =
    ofLists(column) { (_, lists) => number =>
      lists.column.positionsOf(number, lists.block).map(_.toSeq.map(lists.values))
    }.map(_.andThen(_.flatten))

  /**
   * Returns a function that reads a file's list. Its result is None if the file is in no readable
   * segment with lists. None if no file can have a list of the column.
   *
   * @param use given a segment and its lists, returns a function of a file's number in the segment
   */
  private def ofLists[T](column: IndexedColumn)(
      use: (String, Lists) => Int => T): Option[FileSketches => Option[T]] =
    if (!sketched.contains(column.name) || ValueBytes.of(column.dataType).isEmpty) None
    else {
      val found = new ConcurrentHashMap[String, Option[(Lists, Int => T)]]
      def lists(segment: String): Option[(Lists, Int => T)] =
        reading(segment, otherwise = Option.empty[Lists]) { reader =>
          find(reader, column).collect { case own: ListColumn =>
            val block = reader.lists(own)
            Lists(reader.directory.numFiles, own, block, block.values.map(own.bytes.decode))
          }
        }.map(lists => lists -> use(segment, lists))
      Some {
        case FileSketches.Stored(segment, number) if !unusable.contains(segment) =>
          found.computeIfAbsent(segment, lists(_)).flatMap { case (lists, read) =>
            if (number >= lists.numFiles || number < 0) None
            else reading(segment, otherwise = Option.empty[T])(_ => Some(read(number)))
          }
        case _ => None
      }
    }

  override def sizeOf(column: IndexedColumn): SketchSize = {
    val found = readers.keys.toSeq.flatMap(segment =>
      reading(segment, otherwise = Option.empty[SegmentColumn])(find(_, column)))
    SketchSize(
      found.map(_.sketched).sum,
      found.collect { case own: ListColumn => own.sketched }.sum,
      found.map(own => (own.end - own.start).toLong).sum)
  }

  private def find(reader: SegmentReader, column: IndexedColumn): Option[SegmentColumn] =
    reader.directory.columns.find(_.column == column)

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
      column: HashColumn,
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
   * The lists of a column in one segment.
   *
   * @param values the values of the block
   */
  private final case class Lists(
      numFiles: Int,
      column: ListColumn,
      block: ListBlock,
      values: Array[Any])

  /**
   * For the path of a segment, a column and a test, which of the values in the lists pass. A query
   * tests the same values several times. A cached result never becomes outdated, because segment
   * names are not reused. The path is complete, so a forged table cannot affect others.
   */
  private val tested: Cache[(String, IndexedColumn, AnyRef), Array[Boolean]] =
    CacheBuilder.newBuilder().maximumSize(512)
      .build[(String, IndexedColumn, AnyRef), Array[Boolean]]()

  /**
   * The maximum number of hashes to look up in a file, as a multiple of 2^rice, which is roughly
   * the average gap between the file's hashes. If there are more hashes, a false positive is so
   * likely that the lookup is not worthwhile.
   */
  private val MostFalse = 4L
}
