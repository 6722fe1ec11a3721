package io.pyzorder.expressions

import scala.util.Random

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

class BoundariesSuite extends AnyFunSuite {

  private val longs = Seq[(String, Seq[Long])](
    "none" -> Nil,
    "one" -> Seq(5L),
    "the extremes" -> Seq(Long.MinValue, 0L, Long.MaxValue),
    "duplicates" -> Seq(3L, 1L, 3L, 2L, 1L),
    "random values" -> { val random = new Random(7); Seq.fill(500)(random.nextLong()) },
    "close values and a distant one" -> (Long.MaxValue +: Seq.tabulate(300)(_.toLong)))

  for ((name, values) <- longs) test(s"range ids count the boundaries up to a value: $name") {
    val boundaries = Boundaries.fromValues(LongType, values.iterator)
    val distinct = values.distinct
    assert(boundaries.size == distinct.length && boundaries.idCount == distinct.length + 2)
    val asked = Seq(Long.MinValue, -1L, 0L, 1L, Long.MaxValue) ++
      values.flatMap(v => Seq(v - 1, v, v + 1))
    for (value <- asked) assert(boundaries.rangeId(value) == 1 + distinct.count(_ <= value))
    assert(boundaries.rangeId(null) == 0)
  }

  /** Sorted words, several of which share their first eight bytes. */
  private val words = Seq("", "a", "a\u0000", "aaaaaaaa", "aaaaaaaaa", "aaaaaaaab", "b", "\u00e9")

  for (kept <- Seq(words, words.tail, Seq("aaaaaaaaa"))) test(s"range ids of strings: $kept") {
    val boundaries =
      Boundaries.fromValues(StringType, kept.reverse.iterator.map(UTF8String.fromString))
    for ((word, place) <- words.zipWithIndex) {
      val below = kept.count(words.indexOf(_) <= place)
      assert(boundaries.rangeId(UTF8String.fromString(word)) == 1 + below)
    }
  }
}
