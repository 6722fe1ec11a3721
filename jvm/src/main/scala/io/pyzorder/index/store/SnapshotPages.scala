package io.pyzorder.index.store

import java.nio.ByteBuffer

import org.apache.parquet.bytes.BytesInput
import org.apache.parquet.compression.CompressionCodecFactory
import org.apache.parquet.compression.CompressionCodecFactory.BytesInputCompressor
import org.apache.parquet.compression.CompressionCodecFactory.BytesInputDecompressor
import org.apache.parquet.format.Util
import org.apache.parquet.hadoop.metadata.{ColumnChunkMetaData, CompressionCodecName}
import org.apache.parquet.io.InputFile
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

  /**
   * Throws unless the pages of a column chunk lie within the chunk, the chunk lies within the file,
   * and a dictionary has at most one value per byte. Parquet's reader allocates memory for the
   * lengths that a file states, before it reads.
   */
  def checkLengths(input: InputFile, chunk: ColumnChunkMetaData): Unit = {
    val end = chunk.getStartingPos + chunk.getTotalSize
    var at = chunk.getStartingPos
    check(at >= 0 && end >= at && end <= input.getLength)
    val stream = input.newStream()
    try while (at < end) {
        stream.seek(at)
        val page = Util.readPageHeader(stream)
        at = stream.getPos + page.getCompressed_page_size
        check(page.getCompressed_page_size >= 0 && at <= end)
        check(!page.isSetDictionary_page_header ||
          page.getDictionary_page_header.getNum_values <= page.getUncompressed_page_size)
      }
    finally stream.close()
  }

  private def check(isPlausible: Boolean): Unit =
    if (!isPlausible) throw new IllegalStateException("it states lengths that it cannot have")

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
