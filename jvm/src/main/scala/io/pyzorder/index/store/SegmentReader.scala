package io.pyzorder.index.store

import java.io.IOException
import java.util.zip.CRC32

import com.google.common.cache.{Cache, CacheBuilder, Weigher}
import org.apache.hadoop.fs.{FileSystem, Path}

import io.pyzorder.index.sketch.{HashColumn, ListBlock, ListColumn, SegmentDirectory, SketchBlock}
import io.pyzorder.storage.{FileSystems, Links, TableFolder}

/**
 * Reads one segment of sketches, which may come from an untrusted writer. Reads only the directory
 * and the blocks that a lookup needs. Each method throws if what it reads is missing or damaged.
 */
private[store] final class SegmentReader(
    fileSystem: FileSystem,
    folder: TableFolder,
    ref: SegmentRef) {
  import SegmentReader._

  private val path = new Path(folder.index, ref.file)

  def directory: SegmentDirectory =
    cached(Key(path.toString, -1, -1)) {
      val length = Math.toIntExact(ref.length - ref.directory)
      val bytes = read(ref.directory, length, ref.checksum.toInt)
      SegmentDirectory.parse(bytes, Math.toIntExact(ref.directory))
    }(_.estimatedBytes)

  def block(column: HashColumn, bucket: Int): SketchBlock = {
    val start = column.starts(bucket)
    cached(Key(path.toString, start, bucket)) {
      val bytes = read(start.toLong, column.starts(bucket + 1) - start, column.checksums(bucket))
      SketchBlock.of(bytes, column.sketched)
    }(_.estimatedBytes)
  }

  def lists(column: ListColumn): ListBlock =
    cached(Key(path.toString, column.start, 0)) {
      val bytes = read(column.start.toLong, column.end - column.start, column.checksum)
      ListBlock.of(bytes, column.sketched)
    }(_.estimatedBytes)

  private def read(position: Long, length: Int, checksum: Int): Array[Byte] = {
    if (Links.inOwn(path)) throw new IOException("it is a symbolic link")
    val bytes = new Array[Byte](length)
    val in = FileSystems.open(fileSystem, path)
    try in.readFully(position, bytes)
    finally in.close()
    val crc = new CRC32()
    crc.update(bytes)
    if (crc.getValue.toInt != checksum) throw new IllegalStateException("a checksum is wrong")
    bytes
  }
}

private object SegmentReader {

  /**
   * Identifies a block of a segment, or the segment's directory if `start` and `bucket` are
   * negative. A cached value never becomes outdated, because segment names are not reused.
   */
  private final case class Key(segment: String, start: Int, bucket: Int)

  private final case class Weighed(value: AnyRef, bytes: Int)

  private val cache: Cache[Key, Weighed] =
    CacheBuilder.newBuilder()
      .maximumWeight(64L << 20)
      .weigher[Key, Weighed](new Weigher[Key, Weighed] {
        override def weigh(key: Key, read: Weighed): Int = read.bytes
      })
      .build[Key, Weighed]()

  private def cached[T <: AnyRef](key: Key)(read: => T)(size: T => Int): T =
    Option(cache.getIfPresent(key)).map(_.value.asInstanceOf[T]).getOrElse {
      val value = read
      cache.put(key, Weighed(value, size(value)))
      value
    }
}
