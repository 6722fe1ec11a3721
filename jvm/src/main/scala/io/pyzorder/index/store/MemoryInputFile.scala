package io.pyzorder.index.store

import org.apache.parquet.io.{DelegatingSeekableInputStream, InputFile, SeekableInputStream}

/** Presents in-memory bytes as an input file to Parquet's reader. */
private[index] final class MemoryInputFile(bytes: Array[Byte]) extends InputFile {

  override def getLength: Long = bytes.length.toLong

  override def newStream(): SeekableInputStream = {
    val stream = new ByteArraySeek(bytes)
    new DelegatingSeekableInputStream(stream) {
      override def getPos: Long = stream.position
      override def seek(position: Long): Unit = stream.seekTo(position)
    }
  }

  private class ByteArraySeek(data: Array[Byte]) extends java.io.ByteArrayInputStream(data) {
    def position: Long = pos.toLong
    def seekTo(position: Long): Unit = pos = Math.toIntExact(position)
  }
}
