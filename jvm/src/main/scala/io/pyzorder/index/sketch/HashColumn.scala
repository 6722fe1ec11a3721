package io.pyzorder.index.sketch

import scala.collection.mutable.ArrayBuilder

import io.pyzorder.index.model.IndexedColumn

/**
 * A column whose sketches consist of hashes.
 *
 * @param bucketBits how many of a hash's highest bits select its block
 * @param bits       for each file, the number of bits in each of its hashes; 0 if it has no sketch
 * @param rices      for each file, the parameter of its Rice code
 * @param starts     the position of each block in the segment, followed by the end of the last
 *                   block
 * @param checksums  the CRC-32 of each block
 */
final class HashColumn(
    column: IndexedColumn,
    val bucketBits: Int,
    val bits: Array[Byte],
    val rices: Array[Byte],
    val starts: Array[Int],
    val checksums: Array[Int])
    extends SegmentColumn(column, bits.count(_ != 0), starts.head, starts.last) {

  private val positions = SegmentColumn.positions(bits)

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

  override def estimatedBytes: Int =
    super.estimatedBytes + 6 * bits.length + 8 * checksums.length
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

  /**
   * Parses a block. Throws if it is not a list of `files` byte strings.
   *
   * @param start the position of the list
   */
  def of(bytes: Array[Byte], files: Int, start: Int = 0): SketchBlock = {
    val buffer = new SegmentBuffer(bytes)
    buffer.skip(start)
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
