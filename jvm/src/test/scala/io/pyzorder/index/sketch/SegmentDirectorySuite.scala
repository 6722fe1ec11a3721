package io.pyzorder.index.sketch

import java.util.Arrays

import scala.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.{DoubleType, LongType}
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

  private val bytes = ValueBytes.of(LongType).get

  private def list(values: Long*): ValueList =
    ValueList.of(values.iterator.map(v => bytes.encode(InternalRow(v), 0)))

  private def written(sketches: Option[ColumnSketch]*): SegmentBytes =
    SegmentWriter.encode(sketches.length, Seq(column(1) -> sketches.toIndexedSeq))

  private def columnOf(segment: SegmentBytes): SegmentColumn =
    SegmentDirectory.parse(
      Arrays.copyOfRange(segment.bytes, segment.directory, segment.bytes.length),
      segment.directory).columns.head

  test("lists have the values that were written") {
    val random = new Random(7)
    for (_ <- 1 to 50) {
      val files = Some(Seq(3L)) +: IndexedSeq.fill(random.nextInt(5))(
        if (random.nextInt(4) == 0) None
        else Some(Seq.fill(random.nextInt(9))(random.nextInt(30).toLong - 15)))
      val segment = written(files.map(_.map(list(_: _*))): _*)
      val column = columnOf(segment).asInstanceOf[ListColumn]
      val block = ListBlock.of(Arrays.copyOf(segment.bytes, segment.directory), column.sketched)
      files.zipWithIndex.foreach { case (values, file) =>
        val found = column.listOf(file, block, Long.MaxValue)
        assert(found.map(_.values.map(bytes.decode).toSet) == values.map(_.toSet))
        (-16 to 15).foreach(v =>
          assert(column.containsAny(file, block, id => bytes.decode(block.values(id)) == v) ==
            values.forall(_.contains(v))))
      }
    }
  }

  test("hashes are written if some file has no list, or if there are too many values") {
    val few = Some(list(1, 2))
    val hashes = CodedHashes.of(Array(1L << 60, 2L << 60), Long.MaxValue)
    assert(columnOf(written(few, None)).isInstanceOf[ListColumn])
    assert(columnOf(written(few, hashes)).isInstanceOf[HashColumn])
    val many = (0 until 20).map(i => Some(list((i * 250L until i * 250L + 250): _*)))
    assert(columnOf(written(many.take(16): _*)).isInstanceOf[ListColumn])
    assert(columnOf(written(many: _*)).isInstanceOf[HashColumn])
  }

  test("lists and hashes of two parts of a file are merged") {
    val (a, b) = (list(1, 2), list(2, 3))
    def known(sketch: Option[ColumnSketch]) = sketch.get.hashes.get.prefixes.toSeq
    assert(a.union(b).get.asInstanceOf[ValueList].values.map(bytes.decode).toSet == Set(1L, 2L, 3L))
    val all = known(Some(list(1, 2, 3)))
    assert(known(a.union(b.hashes.get)) == all && known(a.hashes.get.union(b)) == all)
    val many = list((0L until 200L): _*).union(list((100L until 300L): _*))
    assert(many.get.isInstanceOf[CodedHashes] && known(many).length == 300)
  }

  test("a list that does not fit becomes hashes") {
    val long = list((0L until 200L): _*)
    assert(long.limitedTo(1800).contains(long) && long.size == 1800)
    assert(long.limitedTo(1799).get.isInstanceOf[CodedHashes])
    assert(long.limitedTo(10).isEmpty)
  }

  test("a forged list cannot name an unknown value, or be longer than its file") {
    val block = ListBlock.of(Array[Byte](1, 1, 7, 1, 0x3f), 1)
    val forged = new ListColumn(column(1), Array[Byte](1), 0, 5, 0)
    assertThrows[IllegalStateException](forged.containsAny(0, block, _ => false))
    assertThrows[IllegalStateException](forged.listOf(0, block, Long.MaxValue))
    val long = ListBlock.of(Array[Byte](1, 0x80.toByte, 0x10) ++ new Array[Byte](2048) ++
        Array[Byte](1, 0x7f), 1)
    assert(forged.listOf(0, long, 2049).get.ids.length == 1)
    assertThrows[IllegalStateException](forged.listOf(0, long, 2048))
    assertThrows[IllegalStateException](ListBlock.of(Array[Byte](0x81.toByte, 0x20), 0))
    assertThrows[IllegalStateException](
      new ListColumn(IndexedColumn(Seq("a"), DoubleType), Array[Byte](1), 0, 5, 0))
  }

  test("a forged block cannot fill the memory with values") {
    val zeros = new Array[Byte](4 + (1 << 20)) // the length 2^20, then one value per bit
    Array(0x80, 0x80, 0x40).map(_.toByte).copyToArray(zeros)
    val block = SketchBlock.of(Arrays.copyOf(zeros, 3 + (1 << 20)), 1)
    val forged =
      new HashColumn(column(1), 0, Array[Byte](62), Array[Byte](0), Array(0, 9), Array(0))
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
    new HashColumn(column(1), 1, Array[Byte](62), Array[Byte](0), Array(0, 1, 2), Array(0, 0))
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
      new HashColumn(column(1), 1, Array[Byte](bits.toByte), Array[Byte](0), Array(0, 1, 2),
        Array(0, 0))
    assertThrows[IllegalStateException](
      column2.hashesOf(0, IndexedSeq(block, block), Long.MaxValue))
  }

  test("a sketch that is longer than its file is not decoded") {
    val block = SketchBlock.of(Array(0x80, 0x10).map(_.toByte) ++ new Array[Byte](2048), 1)
    val long =
      new HashColumn(column(1), 0, Array[Byte](62), Array[Byte](0), Array(0, 2050), Array(0))
    assert(long.hashesOf(0, IndexedSeq(block), 2048).get.count == 8 * 2048)
    assertThrows[IllegalStateException](long.hashesOf(0, IndexedSeq(block), 2047))
  }
}
