package io.pyzorder.index.sketch

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8

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
 * @param column   the column, with the type that its values had when they were hashed or listed
 * @param sketched the number of files with a sketch
 * @param start    the position of the column's first block in the segment
 * @param end      the end of the column's last block
 */
abstract class SegmentColumn(
    val column: IndexedColumn,
    val sketched: Int,
    val start: Int,
    val end: Int) {

  /** The approximate heap size in bytes. */
  def estimatedBytes: Int = column.path.map(2 * _.length + 64).sum + 100
}

object SegmentColumn {

  /** For each file, its position among the files with a sketch. Their parameters are not 0. */
  private[sketch] def positions(parameters: Array[Byte]): Array[Int] =
    parameters.map(p => if (p == 0) 0 else 1).scanLeft(0)(_ + _)
}

object SegmentDirectory {

  /**
   * The kinds of sketches: CodedHashes and ValueLists. Readers ignore columns with other kinds of
   * sketches.
   */
  private[sketch] val Hashes = 1
  private[sketch] val Values = 2

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
      if (kind == Hashes) columns += hashColumnOf(entry, numFiles, start, start + length)
      if (kind == Values) columns += listColumnOf(entry, numFiles, start, start + length)
      start += length
    }
    new SegmentDirectory(numFiles, columns.result())
  }

  private def columnOf(buffer: SegmentBuffer): IndexedColumn = {
    val path =
      List.fill(buffer.number(IndexedColumn.MaxDepth))(new String(buffer.bytes(), UTF_8))
    IndexedColumn(path, typeOf(new String(buffer.bytes(), UTF_8)))
  }

  private def listColumnOf(
      buffer: SegmentBuffer,
      numFiles: Int,
      start: Int,
      end: Int): ListColumn = {
    val column = columnOf(buffer)
    buffer.check(numFiles)
    val rices = Array.fill(numFiles)(buffer.number(MaxBits + 1).toByte)
    new ListColumn(column, rices, start, end, buffer.checksum())
  }

  private def hashColumnOf(
      buffer: SegmentBuffer,
      numFiles: Int,
      start: Int,
      end: Int): HashColumn = {
    val column = columnOf(buffer)
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
    new HashColumn(column, bucketBits, bits, rices, starts, checksums)
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
