package io.pyzorder.index.memory

/**
 * An array of longs. Each long is stored as its distance from the smallest one, in as few bytes as
 * the range requires. This saves memory because the files of a table usually have similar sizes,
 * times and row counts.
 */
sealed abstract class PackedLongs {

  def apply(i: Int): Long

  def length: Int

  /** The approximate heap size in bytes. */
  def estimatedBytes: Long
}

object PackedLongs {

  private val UnsignedByte = 0xffL
  private val UnsignedShort = 0xffffL
  private val UnsignedInt = 0xffffffffL

  /** Packs the values. The array itself is kept only if there is no shorter representation. */
  def of(values: Array[Long]): PackedLongs = {
    val least = if (values.isEmpty) 0L else values.min
    // Interpreted as an unsigned number, the range is correct even if the subtraction overflows.
    val range = if (values.isEmpty) 0L else values.max - least
    def fits(greatest: Long): Boolean = java.lang.Long.compareUnsigned(range, greatest) <= 0
    if (range == 0) new Same(values.length, least)
    else if (fits(UnsignedByte)) new Bytes(least, values.map(v => (v - least).toByte))
    else if (fits(UnsignedShort)) new Shorts(least, values.map(v => (v - least).toShort))
    else if (fits(UnsignedInt)) new Ints(least, values.map(v => (v - least).toInt))
    else new Longs(values)
  }

  private final class Same(override val length: Int, value: Long) extends PackedLongs {
    override def apply(i: Int): Long = value
    override def estimatedBytes: Long = 0L
  }

  private final class Bytes(least: Long, distances: Array[Byte]) extends PackedLongs {
    override def apply(i: Int): Long = least + (distances(i) & UnsignedByte)
    override def length: Int = distances.length
    override def estimatedBytes: Long = length.toLong
  }

  private final class Shorts(least: Long, distances: Array[Short]) extends PackedLongs {
    override def apply(i: Int): Long = least + (distances(i) & UnsignedShort)
    override def length: Int = distances.length
    override def estimatedBytes: Long = 2L * length
  }

  private final class Ints(least: Long, distances: Array[Int]) extends PackedLongs {
    override def apply(i: Int): Long = least + (distances(i) & UnsignedInt)
    override def length: Int = distances.length
    override def estimatedBytes: Long = 4L * length
  }

  private final class Longs(values: Array[Long]) extends PackedLongs {
    override def apply(i: Int): Long = values(i)
    override def length: Int = values.length
    override def estimatedBytes: Long = 8L * length
  }
}
