package io.pyzorder.index.sketch

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable.ArrayBuilder

import org.apache.spark.sql.types.DataType

import io.pyzorder.index.model.IndexedColumn

/** The directory of a segment: its columns, and where their blocks are. */
final class SegmentDirectory(val numFiles: Int, val columns: Seq[SegmentColumn]) {

  /** The approximate heap size in bytes. */
  def estimatedBytes: Int = columns.map(_.estimatedBytes).sum + 100
}

/**
 * One column of a segment.
 *
 * @param column     the column, with the type that its values had when they were hashed
 * @param bucketBits how many of a hash's highest bits select its block
 * @param bits       for each file, the number of bits in each of its hashes; 0 if it has no sketch
 * @param rices      for each file, the parameter of its Rice code
 * @param starts     the position of each block in the segment, followed by the end of the last
 *                   block
 * @param checksums  the CRC-32 of each block
 */
final class SegmentColumn(
    val column: IndexedColumn,
    val bucketBits: Int,
    val bits: Array[Byte],
    val rices: Array[Byte],
    val starts: Array[Int],
    val checksums: Array[Int]) {

  /** For each file, its position among the files with a sketch. */
  private val positions = bits.map(b => if (b == 0) 0 else 1).scanLeft(0)(_ + _)

  /** The number of files with a sketch. */
  def sketched: Int = positions.last

  /** Identifies the only block that can contain the hash. */
  def bucketOf(hash: Long): Int = if (bucketBits == 0) 0 else (hash >>> (64 - bucketBits)).toInt

  /**
   * Whether the file's part of a block contains any of the hashes in `hashes(from until until)`.
   * These hashes must be in unsigned order and belong to this block.
   */
  def contains(
      file: Int,
      block: SketchBlock,
      hashes: Array[Long],
      from: Int,
      until: Int): Boolean = {
    val reader = partOf(file, block, bucketOf(hashes(from)))
    val shift = 64 - bits(file)
    var i = from
    var known = reader.next()
    var found = false
    var count = 0
    while (!found && i < until && known >= 0) {
      val wanted = hashes(i) >>> shift
      if (known == wanted) found = true
      else if (known < wanted) {
        count += 1
        SegmentDirectory.checkCount(count)
        known = reader.next()
      } else i += 1
    }
    found
  }

  /** A file's hashes in one block, in ascending order. */
  private[sketch] def partOf(file: Int, block: SketchBlock, bucket: Int): RiceReader =
    block.part(
      positions(file), bucket.toLong << (bits(file) - bucketBits), rices(file).toInt)

  /**
   * The hashes of a file, or None if it has no sketch.
   *
   * @param blocks all blocks of the column
   * @param most   the maximum length of the sketch in bytes
   */
  def hashesOf(file: Int, blocks: IndexedSeq[SketchBlock], most: Long): Option[CodedHashes] =
    if (bits(file) == 0) None
    else {
      SegmentDirectory.checkLength(blocks.map(_.lengthOf(positions(file)).toLong).sum, most)
      val values = new ArrayBuilder.ofLong
      var count = 0
      blocks.indices.foreach { bucket =>
        val reader = partOf(file, blocks(bucket), bucket)
        val end = (bucket + 1L) << (bits(file) - bucketBits)
        var value = reader.next()
        while (value >= 0) {
          count += 1
          SegmentDirectory.checkCount(count)
          if (value >= end) {
            throw new IllegalStateException("a sketch has a value that belongs to another block")
          }
          values += value
          value = reader.next()
        }
      }
      Some(CodedHashes.coded(values.result(), bits(file).toInt))
    }

  def estimatedBytes: Int =
    6 * bits.length + 8 * checksums.length + column.path.map(2 * _.length + 64).sum + 100
}

/**
 * A block in memory. For each file with a sketch, it contains the encoded hashes that belong to one
 * bucket.
 */
final class SketchBlock(bytes: Array[Byte], starts: Array[Int], ends: Array[Int]) {

  private[sketch] def part(position: Int, base: Long, rice: Int): RiceReader =
    new RiceReader(bytes, starts(position), ends(position), base, rice)

  private[sketch] def lengthOf(position: Int): Int = ends(position) - starts(position)

  /** The approximate heap size in bytes. */
  def estimatedBytes: Int = bytes.length + 8 * starts.length + 100
}

object SketchBlock {

  /** Parses a block. Throws if the block is not a list of `files` byte strings. */
  def of(bytes: Array[Byte], files: Int): SketchBlock = {
    val buffer = new SegmentBuffer(bytes)
    buffer.check(files)
    val starts, ends = new Array[Int](files)
    (0 until files).foreach { i =>
      val length = buffer.length()
      starts(i) = buffer.position
      buffer.skip(length)
      ends(i) = buffer.position
    }
    new SketchBlock(bytes, starts, ends)
  }
}

object SegmentDirectory {

  /**
   * The kind of sketch that consists of CodedHashes. Readers ignore columns with other kinds of
   * sketches.
   */
  private[sketch] val Golomb = 1

  private[sketch] val MaxBucketBits = 16

  private val MaxBits = 62

  /** The maximum number of hashes in one file's sketch, which is far more than a writer keeps. */
  private[sketch] val MaxValues = 1 << 22

  /** Sketches of up to this many bytes may be longer than their files. */
  private val ShortBytes = 1024L

  /**
   * Throws if a sketch is longer than `most`, the length of its file. Decoding sketches then never
   * takes longer than reading the files.
   */
  private[sketch] def checkLength(bytes: Long, most: Long): Unit =
    if (bytes > math.max(most, ShortBytes))
      throw new IllegalStateException("a sketch is longer than its file")

  private[sketch] def checkCount(values: Int): Unit =
    if (values > MaxValues) throw new IllegalStateException("a sketch has too many values")

  /**
   * Parses a directory, which may come from an untrusted writer. Throws if it is invalid.
   *
   * @param end the position of the directory, where the last block ends
   */
  def parse(bytes: Array[Byte], end: Int): SegmentDirectory = {
    val buffer = new SegmentBuffer(bytes)
    val numFiles = buffer.number()
    val count = buffer.number(IndexedColumn.MaxColumns)
    var start = 0
    val columns = List.newBuilder[SegmentColumn]
    (0 until count).foreach { _ =>
      val kind = buffer.number()
      val length = buffer.number(end - start)
      val entry = new SegmentBuffer(buffer.bytes())
      if (kind == Golomb) columns += columnOf(entry, numFiles, start, start + length)
      start += length
    }
    new SegmentDirectory(numFiles, columns.result())
  }

  private def columnOf(
      buffer: SegmentBuffer,
      numFiles: Int,
      start: Int,
      end: Int): SegmentColumn = {
    val path =
      List.fill(buffer.number(IndexedColumn.MaxDepth))(new String(buffer.bytes(), UTF_8))
    val dataType = typeOf(new String(buffer.bytes(), UTF_8))
    val bucketBits = buffer.number(MaxBucketBits)
    buffer.check(numFiles)
    val bits, rices = new Array[Byte](numFiles)
    (0 until numFiles).foreach { i =>
      bits(i) = buffer.number(MaxBits).toByte
      if (bits(i) != 0) {
        rices(i) = buffer.number(MaxBits).toByte
        if (bits(i) < bucketBits) throw new IllegalStateException("a sketch has too few bits")
      }
    }
    val blocks = 1 << bucketBits
    buffer.check(blocks)
    val starts = new Array[Int](blocks + 1)
    val checksums = new Array[Int](blocks)
    starts(0) = start
    (0 until blocks).foreach { i =>
      starts(i + 1) = starts(i) + buffer.number(end - starts(i))
      checksums(i) = buffer.checksum()
    }
    new SegmentColumn(IndexedColumn(path, dataType), bucketBits, bits, rices, starts, checksums)
  }

  /**
   * Parses a column's type, which must be atomic. Otherwise, a forged type could make Spark parse a
   * deeply nested structure or load a class.
   */
  private def typeOf(json: String): DataType =
    if (json.matches("\"[^\"\\\\]*\"")) DataType.fromJson(json)
    else throw new IllegalStateException("a column's type is not atomic")
}

/** Reads numbers and byte strings. Throws if they extend beyond the end of the data. */
private[sketch] final class SegmentBuffer(data: Array[Byte]) {

  private val buffer = ByteBuffer.wrap(data)

  def position: Int = buffer.position()

  /** Reads a variable-length integer (varint). */
  def number(most: Int = Int.MaxValue): Int = {
    var value = 0L
    var shift = 0
    var more = true
    while (more) {
      val group = buffer.get()
      value |= (group & 127L) << shift
      shift += 7
      more = group < 0
      if (value > most || more && shift > 28) {
        throw new IllegalStateException("a number is too large")
      }
    }
    value.toInt
  }

  /** Reads the length of a byte string or list. Throws unless at least that many bytes are left. */
  def length(): Int = {
    val value = number()
    check(value)
    value
  }

  /** Throws unless at least this many bytes are left. */
  def check(count: Int): Unit =
    if (count > buffer.remaining) throw new IllegalStateException("it ends too early")

  def bytes(): Array[Byte] = {
    val value = new Array[Byte](length())
    buffer.get(value)
    value
  }

  def skip(count: Int): Unit = buffer.position(buffer.position() + count)

  def checksum(): Int = buffer.getInt()
}
