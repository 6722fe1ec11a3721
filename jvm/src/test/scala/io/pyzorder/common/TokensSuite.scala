package io.pyzorder.common

import org.scalatest.funsuite.AnyFunSuite

class TokensSuite extends AnyFunSuite {

  private val cases = Seq[(String, Seq[String])](
    "" -> Nil,
    "OPTIMIZE db.t" -> Seq("OPTIMIZE", "db", ".", "t"),
    "a--b\nc" -> Seq("a", "c"),
    "a--b" -> Seq("a"),
    "a/* b /* c */ d */e" -> Seq("a", "e"),
    "a /* never closed" -> Seq("a"),
    "/*+ hint */ a" -> Seq("/", "*", "+", "hint", "*", "/", "a"),
    "`a``b` c" -> Seq("`a``b`", "c"),
    "`a\\` c" -> Seq("`a\\`", "c"),
    "'it''s' 'it\\'s'" -> Seq("'it''s'", "'it\\'s'"),
    "\"-- no comment\"" -> Seq("\"-- no comment\""),
    "'open" -> Seq("'open"),
    "'open\\" -> Seq("'open\\"),
    "a>=1" -> Seq("a", ">", "=", "1"))

  for ((sql, expected) <- cases) test(s"[$sql] is split into tokens") {
    val tokens = Tokens.of(sql)
    assert(tokens.map(_.text) == expected)
    assert(tokens.forall(token => sql.substring(token.start, token.end) == token.text))
  }
}
