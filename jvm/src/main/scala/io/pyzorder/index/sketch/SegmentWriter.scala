package io.pyzorder.index.sketch

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Arrays
import java.util.zip.CRC32

import io.pyzorder.index.model.IndexedColumn

/**
 * The bytes of a segment: the blocks of all columns, followed by the directory. See FORMAT.md,
 * section "Sketches".
 *
 * @param directory the position of the directory
 */
final case class SegmentBytes(bytes: Array[Byte], directory: Int)

object SegmentWriter {

  /** The approximate size of a block. A lookup reads a whole block. */
  private val BlockBytes = 128 << 10

  /**
   * Encodes the sketches of some files.
   *
   * A column whose sketches are all lists of values is written as lists, unless the lists have too
   * many different values. Otherwise, the hashes of the values are written.
   *
   * @param columns for each column, the sketch of each file, or None if the file has no sketch
   */
  def encode(
      numFiles: Int,
      columns: Seq[(IndexedColumn, IndexedSeq[Option[ColumnSketch]])]): SegmentBytes = {
    val blocks = new ByteArrayOutputStream()
    val directory = new ByteArrayOutputStream()
    val to = new Numbers(directory)
    to.number(numFiles)
    to.number(columns.length)
    columns.foreach { case (column, files) =>
      val (entry, before) = (new ByteArrayOutputStream(), blocks.size)
      val description = new Numbers(entry)
      description.number(column.path.length)
      column.path.foreach(part => description.bytes(part.getBytes(UTF_8)))
      description.bytes(column.dataType.json.getBytes(UTF_8))
      val kind = listsOf(files) match {
        case Some(lists) =>
          writeLists(lists, description, blocks)
          SegmentDirectory.Values
        case None =>
          writeHashes(files.map(_.flatMap(_.hashes)), description, blocks)
          SegmentDirectory.Hashes
      }
      to.number(kind)
      to.number(blocks.size - before)
      to.bytes(entry.toByteArray)
    }
    val start = blocks.size
    directory.writeTo(blocks)
    SegmentBytes(blocks.toByteArray, start)
  }

  /** The lists with a common dictionary; None if there are none, or if some file has hashes. */
  private def listsOf(
      files: IndexedSeq[Option[ColumnSketch]]): Option[IndexedSeq[Option[ValueList]]] = {
    val lists = files.map(_.collect { case list: ValueList => list })
    if (lists.forall(_.isEmpty) || lists.count(_.isDefined) < files.count(_.isDefined)) None
    else ValueDictionary.common(lists)
  }

  private def writeLists(
      files: IndexedSeq[Option[ValueList]],
      directory: Numbers,
      blocks: ByteArrayOutputStream): Unit = {
    val block = new ByteArrayOutputStream()
    val to = new Numbers(block)
    val dictionary = files.flatten.headOption.fold(Array.empty[Array[Byte]])(_.dictionary)
    to.number(dictionary.length)
    dictionary.foreach(to.bytes)
    files.foreach {
      case Some(list) =>
        val rice = RiceCode.parameterFor(dictionary.length.toDouble / math.max(1, list.ids.length))
        val sink = new BitSink
        RiceCode.encode(list.ids.map(_.toLong), 0, list.ids.length, 0L, rice, sink)
        directory.number(rice + 1)
        to.bytes(sink.result)
      case None => directory.number(0)
    }
    directory.checksum(checksumOf(block))
    block.writeTo(blocks)
  }

  private def checksumOf(block: ByteArrayOutputStream): Long = {
    val crc = new CRC32()
    crc.update(block.toByteArray)
    crc.getValue
  }

  private def writeHashes(
      files: IndexedSeq[Option[CodedHashes]],
      directory: Numbers,
      blocks: ByteArrayOutputStream): Unit = {
    val bucketBits = bucketBitsOf(files.flatten)
    directory.number(bucketBits)
    files.foreach {
      case Some(codes) =>
        directory.number(codes.bits)
        directory.number(codes.rice)
      case None => directory.number(0)
    }
    val present = files.flatten
    val slices = new Array[Array[Array[Byte]]](present.length)
    Arrays.parallelSetAll[Array[Array[Byte]]](slices, i => slicesOf(present(i), bucketBits))
    (0 until (1 << bucketBits)).foreach { bucket =>
      val block = new ByteArrayOutputStream()
      val to = new Numbers(block)
      slices.foreach(slice => to.bytes(slice(bucket)))
      directory.number(block.size)
      directory.checksum(checksumOf(block))
      block.writeTo(blocks)
    }
  }

  /** How many of a hash's highest bits determine its block. */
  private def bucketBitsOf(files: Seq[CodedHashes]): Int = {
    val blocks = files.map(_.code.length.toLong).sum / BlockBytes
    val wanted = 64 - java.lang.Long.numberOfLeadingZeros(blocks)
    (files.map(_.bits) ++ Seq(wanted, SegmentDirectory.MaxBucketBits)).min
  }

  /** The codes of a file's hashes in each bucket. */
  private def slicesOf(codes: CodedHashes, bucketBits: Int): Array[Array[Byte]] = {
    val values = codes.prefixes
    val shift = codes.bits - bucketBits
    var at = 0
    Array.tabulate(1 << bucketBits) { bucket =>
      val from = at
      while (at < values.length && (values(at) >>> shift) == bucket) at += 1
      val sink = new BitSink
      RiceCode.encode(values, from, at, bucket.toLong << shift, codes.rice, sink)
      sink.result
    }
  }

  /**
   * Writes numbers as variable-length integers (varints) in the encoding of Parquet and Protocol
   * Buffers.
   */
  private final class Numbers(to: ByteArrayOutputStream) {

    def number(value: Int): Unit = {
      var rest = value
      while (rest > 127) {
        to.write(rest & 127 | 128)
        rest >>>= 7
      }
      to.write(rest)
    }

    def bytes(value: Array[Byte]): Unit = {
      number(value.length)
      to.write(value, 0, value.length)
    }

    def checksum(value: Long): Unit = new DataOutputStream(to).writeInt(value.toInt)
  }
}
