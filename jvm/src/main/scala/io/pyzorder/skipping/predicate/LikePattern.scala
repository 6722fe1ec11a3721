package io.pyzorder.skipping.predicate

import org.apache.spark.sql.catalyst.expressions.{Like, Literal}
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

/** The constraint that a LIKE pattern imposes on the beginning of a matching string. */
sealed trait LikePattern

object LikePattern {

  /** A pattern without wildcards, which matches only this string. */
  final case class Exactly(value: UTF8String) extends LikePattern

  /** The characters before the first wildcard. `anyRest` is true if only a single `%` follows. */
  final case class StartingWith(prefix: UTF8String, anyRest: Boolean) extends LikePattern

  /**
   * The character that LIKE substitutes for bytes that are not valid UTF-8. If a pattern contains
   * this character, it therefore also matches such bytes.
   */
  private val Replacement = '\uFFFD'

  /** The column and the parsed pattern of `column LIKE 'literal'`, or None for any other form. */
  def of(like: Like): Option[(FilterColumn, LikePattern)] = (like.left, like.right) match {
    case (FilterColumn(c), Literal(pattern: UTF8String, StringType))
        if c.comparedType == StringType =>
      parse(pattern.toString, like.escapeChar).map(c -> _)
    case _ => None
  }

  /**
   * Returns None if the pattern is invalid, that is, if the escape character is the last character
   * or precedes a character that it cannot escape.
   */
  private[skipping] def parse(pattern: String, escape: Char): Option[LikePattern] = {
    val prefix = new StringBuilder
    var i = 0
    while (i < pattern.length) {
      val c = pattern.charAt(i)
      if (c == escape) {
        if (i + 1 == pattern.length) return None
        val escaped = pattern.charAt(i + 1)
        if (escaped != '_' && escaped != '%' && escaped != escape) return None
        prefix.append(escaped)
        i += 2
      } else if (c == '_' || c == '%' || c == Replacement) {
        val anyRest = c == '%' && i + 1 == pattern.length
        return Some(StartingWith(UTF8String.fromString(prefix.toString), anyRest))
      } else {
        prefix.append(c)
        i += 1
      }
    }
    Some(Exactly(UTF8String.fromString(prefix.toString)))
  }
}
