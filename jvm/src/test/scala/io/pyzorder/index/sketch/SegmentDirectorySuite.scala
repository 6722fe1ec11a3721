package io.pyzorder.index.sketch

import java.util.Arrays

import org.apache.spark.sql.types.LongType
import org.scalatest.funsuite.AnyFunSuite

import io.pyzorder.index.model.IndexedColumn

class SegmentDirectorySuite extends AnyFunSuite {

  private def directory(columns: Seq[IndexedColumn]): SegmentDirectory = {
    val codes = CodedHashes.of(Array(1L << 60, 2L << 60), Long.MaxValue)
    val segment = SegmentWriter.encode(1, columns.map(_ -> IndexedSeq(codes)))
    val bytes = Arrays.copyOfRange(segment.bytes, segment.directory, segment.bytes.length)
    SegmentDirectory.parse(bytes, segment.directory)
  }

  private def column(depth: Int): IndexedColumn =
    IndexedColumn(Seq.fill(depth)("a"), LongType)

  test("a directory has the columns that were written") {
    val columns = Seq(column(1), column(2), column(IndexedColumn.MaxDepth))
    assert(directory(columns).columns.map(_.column) == columns)
  }

  test("a forged directory cannot fill the memory with names") {
    assertThrows[IllegalStateException](directory(Seq(column(IndexedColumn.MaxDepth + 1))))
    val many = Seq.tabulate(IndexedColumn.MaxColumns + 1)(i => IndexedColumn(Seq(s"a$i"), LongType))
    assertThrows[IllegalStateException](directory(many))
    val (short, long) = (column(1), IndexedColumn(Seq("a" * 100000), LongType))
    val sizes = Seq(short, long).map(c => directory(Seq(c)).estimatedBytes)
    assert(sizes(1) - sizes(0) > 100000)
  }

  test("a forged block cannot fill the memory with values") {
    val zeros = new Array[Byte](4 + (1 << 20)) // the length 2^20, then one value per bit
    Array(0x80, 0x80, 0x40).map(_.toByte).copyToArray(zeros)
    val block = SketchBlock.of(Arrays.copyOf(zeros, 3 + (1 << 20)), 1)
    val forged =
      new SegmentColumn(column(1), 0, Array[Byte](62), Array[Byte](0), Array(0, 9), Array(0))
    assertThrows[IllegalStateException](forged.hashesOf(0, IndexedSeq(block), Long.MaxValue))
  }

  /**
   * The sketch of one file that has one value in each of two blocks: value number `first` in the
   * first block, and value number `second` in the second block.
   */
  private def forged(first: Int, second: Int): Option[CodedHashes] = {
    val blocks = IndexedSeq(first, second).map { ones =>
      val sink = new BitSink
      sink.ones(ones.toLong)
      sink.pad()
      SketchBlock.of((sink.result.length.toByte +: sink.result), 1)
    }
    new SegmentColumn(column(1), 1, Array[Byte](62), Array[Byte](0), Array(0, 1, 2), Array(0, 0))
      .hashesOf(0, blocks, Long.MaxValue)
  }

  test("a forged parameter of the code cannot fill the memory when a sketch is copied") {
    val codes = forged(5, 7).get
    assert(codes.prefixes.toSeq == Seq(5L, (1L << 61) + 7))
    assert(codes.code.length < 100)
  }

  test("a forged block cannot contain values of another block") {
    // The block contains the value 4, which does not belong to the first block.
    val (bits, block) = (2, SketchBlock.of(Array[Byte](1, 0xf0.toByte), 1))
    val column2 =
      new SegmentColumn(column(1), 1, Array[Byte](bits.toByte), Array[Byte](0), Array(0, 1, 2),
        Array(0, 0))
    assertThrows[IllegalStateException](
      column2.hashesOf(0, IndexedSeq(block, block), Long.MaxValue))
  }

  test("a sketch that is longer than its file is not decoded") {
    val block = SketchBlock.of(Array(0x80, 0x10).map(_.toByte) ++ new Array[Byte](2048), 1)
    val long =
      new SegmentColumn(column(1), 0, Array[Byte](62), Array[Byte](0), Array(0, 2050), Array(0))
    assert(long.hashesOf(0, IndexedSeq(block), 2048).get.count == 8 * 2048)
    assertThrows[IllegalStateException](long.hashesOf(0, IndexedSeq(block), 2047))
  }
}
