package io.pyzorder.skipping.predicate

import java.util.regex.Pattern

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{Literal, RLike}
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

/**
 * The characters with which every string begins that matches a regular expression.
 *
 * @param anyRest whether every string that begins with `prefix` matches
 */
private[skipping] final case class RegexPrefix(prefix: UTF8String, anyRest: Boolean)

private[skipping] object RegexPrefix {

  /**
   * The characters that may have a special meaning outside a character class. The last one is the
   * character that stands for bytes that are not valid UTF-8, as in LikePattern.
   */
  private val Special = "\\^$.|?*+()[]{}\uFFFD".toSet

  private val Quantifiers = "?*+{".toSet

  /** The maximum length of a regular expression that is examined. */
  private val MaxLength = 10000

  /** The column and the prefix of `column RLIKE '^literal…'`, or None for any other form. */
  def of(rlike: RLike): Option[(FilterColumn, RegexPrefix)] = (rlike.left, rlike.right) match {
    case (FilterColumn(c), Literal(pattern: UTF8String, StringType))
        if c.comparedType == StringType =>
      parse(pattern.toString).map(c -> _)
    case _ => None
  }

  /**
   * RLIKE is TRUE if some part of the string matches. Without flags, which cannot precede it here,
   * `^` matches only at the beginning of the string. Unless the expression has alternatives, a
   * match therefore begins there, and its first characters are those that follow `^`, up to the
   * first special one. A quantifier may make the character before it optional. None if there are no
   * such characters, or if the expression is invalid, because then the query must raise the error.
   */
  private[skipping] def parse(pattern: String): Option[RegexPrefix] =
    if (!pattern.startsWith("^") || pattern.contains('|') || !isValid(pattern)) None
    else {
      val literal = pattern.drop(1).takeWhile(!Special(_))
      val rest = pattern.drop(1 + literal.length)
      val prefix =
        if (rest.isEmpty || !Quantifiers(rest.head) || literal.isEmpty) literal
        else literal.dropRight(Character.charCount(literal.codePointBefore(literal.length)))
      Some(RegexPrefix(UTF8String.fromString(prefix), rest.isEmpty || rest == ".*"))
        .filter(_ => prefix.nonEmpty)
    }

  private def isValid(pattern: String): Boolean =
    pattern.length <= MaxLength && (try {
      Pattern.compile(pattern)
      true
    } catch { case NonFatal(_) | _: StackOverflowError => false })
}
