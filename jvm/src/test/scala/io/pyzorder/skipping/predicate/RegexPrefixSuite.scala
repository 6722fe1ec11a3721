package io.pyzorder.skipping.predicate

import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

class RegexPrefixSuite extends AnyFunSuite {

  private def starting(text: String, anyRest: Boolean = false): Option[RegexPrefix] =
    Some(RegexPrefix(UTF8String.fromString(text), anyRest))

  private val cases = Seq[(String, Option[RegexPrefix])](
    "^abc" -> starting("abc", anyRest = true),
    "^abc.*" -> starting("abc", anyRest = true),
    "^abc$" -> starting("abc"),
    "^abc.*d" -> starting("abc"),
    "^ab(c)?" -> starting("ab"),
    "^ab[cd]" -> starting("ab"),
    "^ab\\.c" -> starting("ab"),
    "^é𝄞x" -> starting("é𝄞x", anyRest = true),
    "^a b#c" -> starting("a b#c", anyRest = true),
    "^abc?" -> starting("ab"),
    "^abc*" -> starting("ab"),
    "^abc+d" -> starting("ab"),
    "^abc{0,2}" -> starting("ab"),
    "^a𝄞*" -> starting("a"),
    "^a?" -> None,
    "^ab\uFFFDc" -> starting("ab"),
    "^abc|d" -> None,
    "^ab(c|d)" -> None,
    "^*abc" -> None,
    "^(?i)abc" -> None,
    "(?i)^abc" -> None,
    "abc" -> None,
    "^" -> None,
    "" -> None,
    "^ab(" -> None,
    "^ab[" -> None,
    "^ab{" -> None,
    "^a" + "b" * 10000 -> None)

  for ((pattern, expected) <- cases) test(s"'${pattern.take(20)}', ${pattern.length} characters") {
    assert(RegexPrefix.parse(pattern) == expected)
  }

  test("Java's parser may overflow the stack") {
    val found = RegexPrefix.parse("^a" + "(" * 4990 + ")" * 4990)
    assert(found.isEmpty || found == starting("a"))
  }
}
