package io.pyzorder.index.memory

import org.scalatest.funsuite.AnyFunSuite

class PackedLongsSuite extends AnyFunSuite {

  /** Some values, and the number of bytes that each value takes when packed. */
  private val cases = Seq[(Seq[Long], Int)](
    Seq() -> 0,
    Seq(7L, 7L, 7L) -> 0,
    Seq(-1L, 254L) -> 1,
    Seq(-1L, 255L) -> 2,
    Seq(0L, 65535L) -> 2,
    Seq(0L, 65536L) -> 4,
    Seq(-5L, 4294967290L) -> 4,
    Seq(-5L, 4294967291L) -> 8,
    Seq(Long.MinValue, 0L, Long.MaxValue) -> 8,
    Seq(Long.MinValue, Long.MinValue + 255) -> 1,
    Seq(Long.MaxValue - 255, Long.MaxValue) -> 1)

  for ((values, width) <- cases) test(s"$values take $width bytes each") {
    val packed = PackedLongs.of(values.toArray)
    assert(packed.length == values.length)
    assert(values.indices.map(packed(_)) == values)
    assert(packed.estimatedBytes == width.toLong * values.length)
  }
}
