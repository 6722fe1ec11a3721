package io.pyzorder.layout.cells

/**
 * Computes the positions of points on the Hilbert curve. A point's coordinates are transformed into
 * numbers whose interleaved bits are the point's position.
 */
object HilbertCurve {

  /**
   * Replaces a point's coordinates with the transpose of its position on the curve. Interleaving
   * the bits of the results, with the first coordinate as the most significant, gives the position
   * (Skilling, "Programming the Hilbert curve", 2004).
   *
   * @param point coordinates of `bits` bits each
   */
  def transpose(point: Array[Int], bits: Int): Unit = {
    var mask = 1 << (bits - 1)
    while (mask > 1) {
      val below = mask - 1
      var c = 0
      while (c < point.length) {
        if ((point(c) & mask) != 0) {
          point(0) ^= below
        } else {
          val swap = (point(0) ^ point(c)) & below
          point(0) ^= swap
          point(c) ^= swap
        }
        c += 1
      }
      mask >>>= 1
    }
    grayCode(point, bits)
  }

  private def grayCode(point: Array[Int], bits: Int): Unit = {
    var c = 1
    while (c < point.length) { point(c) ^= point(c - 1); c += 1 }
    var flip = 0
    var mask = 1 << (bits - 1)
    while (mask > 1) {
      if ((point(point.length - 1) & mask) != 0) flip ^= mask - 1
      mask >>>= 1
    }
    c = 0
    while (c < point.length) { point(c) ^= flip; c += 1 }
  }
}
