package io.pyzorder.skipping.predicate

import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

import io.pyzorder.skipping.predicate.LikePattern.{Exactly, StartingWith}

class LikePatternSuite extends AnyFunSuite {

  private def exactly(text: String): Option[LikePattern] =
    Some(Exactly(UTF8String.fromString(text)))

  private def starting(text: String, anyRest: Boolean): Option[LikePattern] =
    Some(StartingWith(UTF8String.fromString(text), anyRest))

  private val cases = Seq[(String, Option[LikePattern])](
    "" -> exactly(""),
    "abc" -> exactly("abc"),
    "%" -> starting("", anyRest = true),
    "abc%" -> starting("abc", anyRest = true),
    "abc%%" -> starting("abc", anyRest = false),
    "abc_" -> starting("abc", anyRest = false),
    "a%c" -> starting("a", anyRest = false),
    "a!%b%" -> starting("a%b", anyRest = true),
    "a!_" -> exactly("a_"),
    "a!!" -> exactly("a!"),
    "a!" -> None,
    "a!b" -> None,
    "a\uFFFDb" -> starting("a", anyRest = false))

  for ((pattern, expected) <- cases) test(s"'$pattern' ESCAPE '!'") {
    assert(LikePattern.parse(pattern, '!') == expected)
  }
}
