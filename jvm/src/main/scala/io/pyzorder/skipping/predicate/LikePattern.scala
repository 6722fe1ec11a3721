package io.pyzorder.skipping.predicate

import org.apache.spark.sql.catalyst.expressions.{Like, Literal}
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

/** What a LIKE pattern says about how a matching string begins. */
sealed trait LikePattern

object LikePattern {

  /** No wildcard: the string itself. */
  final case class Exactly(value: UTF8String) extends LikePattern

  /** Characters before the first wildcard; `anyRest`: all that follows is one `%`. */
  final case class StartingWith(prefix: UTF8String, anyRest: Boolean) extends LikePattern

  /** LIKE turns bytes that are no UTF-8 into this character: it may stand for others. */
  private val Replacement = '\uFFFD'

  /** The column and the pattern's beginning, of `column LIKE 'literal'`; None for all else. */
  def of(like: Like): Option[(FilterColumn, LikePattern)] = (like.left, like.right) match {
    case (FilterColumn(c), Literal(pattern: UTF8String, StringType))
        if c.comparedType == StringType =>
      parse(pattern.toString, like.escapeChar).map(c -> _)
    case _ => None
  }

  /** None: the pattern is in error (the escape character escapes nothing). */
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
