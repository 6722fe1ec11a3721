package io.pyzorder.index.store

import java.nio.ByteBuffer

import org.apache.parquet.bytes.BytesInput
import org.apache.parquet.compression.CompressionCodecFactory
import org.apache.parquet.compression.CompressionCodecFactory.BytesInputCompressor
import org.apache.parquet.compression.CompressionCodecFactory.BytesInputDecompressor
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.xerial.snappy.Snappy

/**
 * Decompresses the pages of a snapshot, which may come from an untrusted writer. Accepts only the
 * codecs that pyzorder's writers use, because other codecs can compress a gigabyte to a few KiB.
 * The length of a page is checked before memory is allocated for it. The object has no state, so
 * all readers share it.
 */
private[store] object SnapshotPages extends CompressionCodecFactory {

  /** The maximum length of a page. The Scala and Python writers end a page after about 1 MiB. */
  private val MaxPageBytes = 64 << 20

  /**
   * The maximum ratio of a page's length to its compressed length. Snappy's densest element takes 3
   * bytes and yields up to 64, which is less than 22 bytes per compressed byte.
   */
  private val MaxRatio = 22L

  /** Throws unless pyzorder's writers use the codec. */
  def check(codec: CompressionCodecName): Unit =
    if (codec != CompressionCodecName.SNAPPY && codec != CompressionCodecName.UNCOMPRESSED) {
      throw new IllegalStateException(s"it is compressed with $codec, which pyzorder does not use")
    }

  override def getDecompressor(codec: CompressionCodecName): BytesInputDecompressor = {
    check(codec)
    if (codec == CompressionCodecName.SNAPPY) SnappyPage else PlainPage
  }

  override def getCompressor(codec: CompressionCodecName): BytesInputCompressor =
    throw new UnsupportedOperationException("this factory only decompresses")

  override def release(): Unit = ()

  private object SnappyPage extends BytesInputDecompressor {

    override def decompress(page: BytesInput, length: Int): BytesInput =
      if (length == 0) BytesInput.empty()
      else {
        val compressed = page.toByteArray
        checkLength(length, Snappy.uncompressedLength(compressed), compressed.length)
        BytesInput.from(Snappy.uncompress(compressed), 0, length)
      }

    override def decompress(from: ByteBuffer, size: Int, to: ByteBuffer, length: Int): Unit =
      SnapshotPages.decompress(this, from, size, to, length)

    override def release(): Unit = ()
  }

  private object PlainPage extends BytesInputDecompressor {

    override def decompress(page: BytesInput, length: Int): BytesInput = page

    override def decompress(from: ByteBuffer, size: Int, to: ByteBuffer, length: Int): Unit =
      SnapshotPages.decompress(this, from, size, to, length)

    override def release(): Unit = ()
  }

  /**
   * Throws if a page's actual length differs from the stated one or is too large.
   *
   * @param stated     the length according to the page's header
   * @param actual     the length according to the compressed data
   * @param compressed the length of the compressed data
   */
  private def checkLength(stated: Int, actual: Int, compressed: Int): Unit =
    if (actual != stated || actual > MaxPageBytes || actual > compressed * MaxRatio) {
      throw new IllegalStateException(
        s"a page of $compressed bytes has $actual bytes when decompressed, which exceeds the " +
          s"limit or differs from its header ($stated)")
    }

  /**
   * Decompresses `size` bytes from one buffer into another. Parquet calls this overload if its
   * buffers are off-heap.
   */
  private def decompress(
      pages: BytesInputDecompressor,
      from: ByteBuffer,
      size: Int,
      to: ByteBuffer,
      length: Int): Unit = {
    val compressed = new Array[Byte](size)
    from.get(compressed)
    to.put(pages.decompress(BytesInput.from(compressed, 0, size), length).toByteArray)
  }
}
