package io.pyzorder.expressions

import org.apache.spark.unsafe.types.ByteArray

/**
 * A box in the space of the columns' ordered bits. The z-order curve may enter and leave the box
 * several times.
 *
 * @param low  for each column, the lower bound of its ordered bits, inclusive. Ordered bits are
 *             compared as unsigned numbers
 * @param high for each column, the upper bound of its ordered bits, inclusive
 */
final class CurveBox(low: Array[Long], high: Array[Long]) {

  private val highest: Array[Byte] = InterleaveBits.bytes(high)

  /**
   * Whether the box contains a z-value between `least` and `greatest`, inclusive. Finds the
   * smallest z-value that is in the box and not below `least`, using the BIGMIN algorithm from
   * Tropf and Herzog, "Multidimensional Range Search in Dynamically Balanced Trees" (1981). The
   * algorithm makes one pass over the bits, starting with the highest. `from` and `to` are the
   * corners of the part of the box that agrees with `least` in all bits examined so far.
   */
  def meets(least: Array[Byte], greatest: Array[Byte]): Boolean = {
    val n = low.length
    if (least.length != 8 * n || greatest.length != 8 * n) true // truncated bounds
    else if (ByteArray.compareBinary(highest, least) < 0) false
    else {
      val from = low.clone()
      val to = high.clone()
      // The smallest z-value found so far that is in the box and above `least`, or null if there is
      // none.
      var above: Array[Long] = null
      var k = 0
      while (k < 64 * n) {
        val column = k % n
        val bit = 1L << (63 - k / n)
        val isSet = (least(k >> 3) & (0x80 >> (k & 7))) != 0
        val fromSet = (from(column) & bit) != 0
        val toSet = (to(column) & bit) != 0
        if (!isSet && fromSet) { above = from; k = 64 * n } // the rest of the box is above `least`
        else if (isSet && !toSet) { return above != null && reaches(above, greatest) }
        else {
          if (toSet && !fromSet) {
            // The bit divides the remaining part of the box into two halves. The search continues
            // in the half that agrees with `least` in this bit.
            if (isSet) from(column) = (from(column) & -(bit << 1)) | bit
            else {
              above = from.clone()
              above(column) = (from(column) & -(bit << 1)) | bit
              to(column) = (to(column) & -(bit << 1)) | (bit - 1)
            }
          }
          k += 1
          if (k == 64 * n) above = from // `least` itself lies in the box
        }
      }
      reaches(above, greatest)
    }
  }

  private def reaches(columns: Array[Long], greatest: Array[Byte]): Boolean =
    ByteArray.compareBinary(InterleaveBits.bytes(columns), greatest) <= 0
}
