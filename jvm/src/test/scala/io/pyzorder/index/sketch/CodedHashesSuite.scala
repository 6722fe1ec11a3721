package io.pyzorder.index.sketch

import scala.util.Random
import scala.util.control.NonFatal

import org.apache.spark.sql.types.{LongType, StringType}
import org.scalatest.funsuite.AnyFunSuite

import io.pyzorder.index.model.IndexedColumn

class CodedHashesSuite extends AnyFunSuite {

  private val random = new Random(7)

  private def hashes(count: Int): Array[Long] = Array.fill(count)(random.nextLong()).distinct

  private def prefixesOf(values: Array[Long], bits: Int): Seq[Long] =
    values.map(_ >>> (64 - bits)).distinct.sorted.toSeq

  for (count <- Seq(0, 1, 2, 3, 10, 100, 1000, 50000)) {
    test(s"$count hashes are decoded") {
      val values = hashes(count)
      val coded = CodedHashes.of(values, Long.MaxValue).get
      assert(coded.prefixes.toSeq == prefixesOf(values, coded.bits))
      assert(coded.count == coded.prefixes.length)
    }
  }

  test("extreme hashes are decoded") {
    val values = Array(0L, 1L, -1L, Long.MinValue, Long.MaxValue)
    val coded = CodedHashes.of(values, Long.MaxValue).get
    assert(coded.prefixes.toSeq == prefixesOf(values, coded.bits))
  }

  test("a smaller budget keeps fewer bits but every hash") {
    val values = hashes(10000)
    val sizes = Seq(30000L, 20000L, 15000L, 10000L, 7000L)
    val limited = sizes.map(CodedHashes.of(values, _).get)
    limited.zip(sizes).foreach { case (coded, most) =>
      assert(coded.code.length <= most)
      assert(coded.prefixes.toSeq == prefixesOf(values, coded.bits))
    }
    assert(limited.map(_.bits) == limited.map(_.bits).sorted.reverse)
    assert(limited.head.limitedTo(7000).contains(limited.last) ||
      limited.head.limitedTo(7000).exists(_.prefixes.sameElements(limited.last.prefixes)))
  }

  test("a sketch with more than 10% false positives is not kept") {
    assert(CodedHashes.of(hashes(10000), 4000).isEmpty)
    assert(CodedHashes.of(hashes(10000), 0).isEmpty)
  }

  test("at 1% false positives, a hash takes about one byte") {
    val coded = CodedHashes.of(hashes(100000), 103000).get
    assert(100000.0 / (1L << coded.bits) < 0.015)
  }

  test("the union of two parts contains the hashes of both") {
    val (a, b) = (hashes(100), hashes(5000))
    val both =
      CodedHashes.of(a, Long.MaxValue).get.union(CodedHashes.of(b, 8000).get).get.hashes.get
    assert(both.prefixes.toSeq == prefixesOf(a ++ b, both.bits))
  }

  private val columns =
    Seq(IndexedColumn(Seq("a", "b"), LongType), IndexedColumn(Seq("c"), StringType))

  private def directoryOf(segment: SegmentBytes): SegmentDirectory =
    SegmentDirectory.parse(segment.bytes.drop(segment.directory), segment.directory)

  private def blockOf(segment: SegmentBytes, column: HashColumn)(bucket: Int): SketchBlock =
    SketchBlock.of(
      segment.bytes.slice(column.starts(bucket), column.starts(bucket + 1)), column.sketched)

  for (sizes <- Seq(Seq(5), Seq(0, 100, 3), Seq(200000, 5, 150000))) {
    test(s"a segment of files with $sizes hashes contains them, in any number of blocks") {
      val values = columns.map(_ => sizes.map(hashes))
      val files = values.map(_.map(CodedHashes.of(_, Long.MaxValue)).toIndexedSeq)
      val gaps = files.updated(1, files(1).updated(0, None))
      val segment = SegmentWriter.encode(sizes.length, columns.zip(gaps))
      val directory = directoryOf(segment)
      assert(directory.numFiles == sizes.length)
      assert(directory.columns.map(_.column) == columns)
      directory.columns.zipWithIndex.foreach { case (found, c) =>
        val column = found.asInstanceOf[HashColumn]
        val blocks = column.checksums.indices.map(blockOf(segment, column))
        assert(
          sizes.indices.map(column.hashesOf(_, blocks, Long.MaxValue).map(_.prefixes.toSeq)) ==
            gaps(c).map(_.map(_.prefixes.toSeq)))
        sizes.indices.filter(column.bits(_) != 0).foreach { file =>
          values(c)(file).take(1000).foreach { hash =>
            val block = blockOf(segment, column)(column.bucketOf(hash))
            assert(column.contains(file, block, Array(hash), 0, 1))
          }
          val others = hashes(1000).count { hash =>
            val block = blockOf(segment, column)(column.bucketOf(hash))
            column.contains(file, block, Array(hash), 0, 1)
          }
          assert(others < 20)
        }
      }
    }
  }

  test("the code and the segment in FORMAT.md") {
    val coded = CodedHashes.coded(Array(3L, 20L, 21L, 200L), 8, 4)
    assert(hex(coded.code) == "1c00ffe2")
    val segment = SegmentWriter.encode(
      2, Seq(IndexedColumn(Seq("a"), LongType) -> IndexedSeq(None, Some(coded))))
    assert(hex(segment.bytes.take(segment.directory)) == "041c00ffe2")
    assert(hex(segment.bytes.drop(segment.directory)) ==
      "0201" + "010513" + "010161" + "06226c6f6e6722" + "00" + "00" + "0804" + "05f44dc7dc")
  }

  private def hex(bytes: Array[Byte]): String = bytes.map(b => f"$b%02x").mkString

  test("a damaged directory is either rejected or parsed, and does not take long") {
    val files = IndexedSeq.fill(20)(CodedHashes.of(hashes(50), Long.MaxValue))
    val segment = SegmentWriter.encode(20, columns.map(_ -> files))
    val directory = segment.bytes.drop(segment.directory)
    (0 until 20000).foreach { _ =>
      val damaged = directory.clone()
      (0 to random.nextInt(3)).foreach(_ =>
        damaged(random.nextInt(damaged.length)) = random.nextInt().toByte)
      try {
        val end = random.nextInt(damaged.length + 1)
        SegmentDirectory.parse(damaged.take(end), segment.directory)
      } catch { case NonFatal(_) => }
    }
  }
}
