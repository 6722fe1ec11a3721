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

  /**
   * Packs the values. The array itself is kept only if there is no shorter representation. The
   * loops are written so that no value is boxed.
   */
  def of(values: Array[Long]): PackedLongs = {
    val found = java.util.Arrays.stream(values).summaryStatistics()
    val least = found.getMin
    // Interpreted as an unsigned number, the range is correct even if the subtraction overflows.
    val range = found.getMax - least
    def fits(greatest: Long): Boolean = java.lang.Long.compareUnsigned(range, greatest) <= 0
    def eachDistance(set: (Int, Long) => Unit): Unit = {
      var i = 0
      while (i < values.length) {
        set(i, values(i) - least)
        i += 1
      }
    }
    if (values.isEmpty || range == 0) new Same(values.length, least)
    else if (fits(UnsignedByte)) {
      val bytes = new Array[Byte](values.length)
      eachDistance((i, distance) => bytes(i) = distance.toByte)
      new Bytes(least, bytes)
    } else if (fits(UnsignedShort)) {
      val shorts = new Array[Short](values.length)
      eachDistance((i, distance) => shorts(i) = distance.toShort)
      new Shorts(least, shorts)
    } else if (fits(UnsignedInt)) {
      val ints = new Array[Int](values.length)
      eachDistance((i, distance) => ints(i) = distance.toInt)
      new Ints(least, ints)
    } else new Longs(values)
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
