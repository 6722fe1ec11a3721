package io.pyzorder.index.store

import org.apache.parquet.bytes.BytesInput
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.scalatest.funsuite.AnyFunSuite
import org.xerial.snappy.Snappy

class SnapshotPagesSuite extends AnyFunSuite {

  private def unpacked(page: Array[Byte], length: Int): Array[Byte] =
    SnapshotPages.getDecompressor(CompressionCodecName.SNAPPY)
      .decompress(BytesInput.from(page, 0, page.length), length).toByteArray

  for (length <- Seq(0, 1, 1000, 1 << 20)) {
    test(s"$length equal bytes, which Snappy compresses best, are decompressed") {
      val page = Array.fill(length)(7.toByte)
      assert(unpacked(Snappy.compress(page), length).sameElements(page))
    }
  }

  test("an empty page is decompressed") {
    assert(unpacked(Array.emptyByteArray, 0).isEmpty)
  }

  test("a page is rejected if its length differs from its header") {
    intercept[IllegalStateException](unpacked(Snappy.compress(new Array[Byte](100)), 99))
  }

  test("a page is rejected if it is too long") {
    val length = 65 << 20
    intercept[IllegalStateException](unpacked(Snappy.compress(new Array[Byte](length)), length))
  }

  test("a page is rejected if it claims to contain more than Snappy can compress") {
    val claim = Array(0x80, 0x80, 0x80, 0x18).map(_.toByte) // 48 MiB
    intercept[IllegalStateException](unpacked(claim ++ new Array[Byte](100), 48 << 20))
  }

  for (codec <- Seq(CompressionCodecName.ZSTD, CompressionCodecName.GZIP)) {
    test(s"a page compressed with $codec is rejected") {
      intercept[IllegalStateException](SnapshotPages.getDecompressor(codec))
    }
  }
}
