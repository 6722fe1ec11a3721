package io.pyzorder.common

import scala.collection.mutable.ArrayBuffer
import scala.util.parsing.input.{Position, Reader}

/**
 * One word, quoted string or punctuation character of a statement.
 *
 * @param text  the text as written, including quotes
 * @param start the offset of the first character in the statement
 */
final case class Token(text: String, start: Int, kind: Token.Kind) {
  def end: Int = start + text.length

  /** Whether this is the given keyword, ignoring case. Quoted text is never a keyword. */
  def is(keyword: String): Boolean = kind == Token.Word && text.equalsIgnoreCase(keyword)
}

object Token {
  sealed trait Kind

  /** A word, which consists of letters, digits and underscores. */
  case object Word extends Kind

  /** A name in backticks, `` `…` ``. A backtick within the name is doubled. */
  case object BackQuoted extends Kind

  /** A quoted string, `'…'` or `"…"`. */
  case object Quoted extends Kind

  /** A single character of any other kind. */
  case object Sign extends Kind

  /** The end of the text, after the last token. */
  val end: Token = Token("", Int.MaxValue, Sign)
}

/** Splits SQL text into tokens, skipping comments and white space. */
object Tokens {

  /** All tokens of a text. An unclosed quote or comment extends to the end of the text. */
  def of(sql: String): IndexedSeq[Token] = {
    val tokens = ArrayBuffer.empty[Token]
    var at = skipBlank(sql, 0)
    while (at < sql.length) {
      val token = tokenAt(sql, at)
      tokens += token
      at = skipBlank(sql, token.end)
    }
    tokens.toIndexedSeq
  }

  /** The token that starts at `at`, which must be neither white space nor a comment. */
  private[pyzorder] def tokenAt(sql: String, at: Int): Token = {
    val first = sql.charAt(at)
    if (isWord(first)) {
      var end = at + 1
      while (end < sql.length && isWord(sql.charAt(end))) end += 1
      Token(sql.substring(at, end), at, Token.Word)
    } else if (first == '`') {
      Token(sql.substring(at, endOfQuote(sql, at, escapes = false)), at, Token.BackQuoted)
    } else if (first == '\'' || first == '"') {
      Token(sql.substring(at, endOfQuote(sql, at, escapes = true)), at, Token.Quoted)
    } else {
      Token(sql.substring(at, at + 1), at, Token.Sign)
    }
  }

  /** The offset of the next character that is neither white space nor part of a comment. */
  private[pyzorder] def skipBlank(sql: String, from: Int): Int = {
    var at = from
    var blank = true
    while (blank && at < sql.length) {
      if (Character.isWhitespace(sql.charAt(at))) at += 1
      else if (sql.startsWith("--", at)) at = endOfLine(sql, at)
      else if (sql.startsWith("/*", at) && !sql.startsWith("/*+", at)) at = endOfComment(sql, at)
      else blank = false
    }
    at
  }

  private def isWord(c: Char): Boolean = Character.isLetterOrDigit(c) || c == '_'

  private def endOfLine(sql: String, at: Int): Int = {
    val end = sql.indexOf('\n', at)
    if (end < 0) sql.length else end + 1
  }

  /** Comments nest, as in Spark. */
  private def endOfComment(sql: String, at: Int): Int = {
    var depth = 1
    var i = at + 2
    while (depth > 0 && i < sql.length) {
      if (sql.startsWith("/*", i)) { depth += 1; i += 2 }
      else if (sql.startsWith("*/", i)) { depth -= 1; i += 2 }
      else i += 1
    }
    i
  }

  private def endOfQuote(sql: String, at: Int, escapes: Boolean): Int = {
    val quote = sql.charAt(at)
    var i = at + 1
    while (i < sql.length) {
      if (escapes && sql.charAt(i) == '\\') i += 2
      else if (sql.charAt(i) != quote) i += 1
      else if (i + 1 < sql.length && sql.charAt(i + 1) == quote) i += 2
      else return i + 1
    }
    sql.length
  }
}

/** Feeds tokens to the parser combinators. */
private[pyzorder] final class TokenReader(tokens: IndexedSeq[Token], at: Int)
    extends Reader[Token] {
  override def first: Token = if (atEnd) Token.end else tokens(at)
  override def rest: Reader[Token] = if (atEnd) this else new TokenReader(tokens, at + 1)
  override def atEnd: Boolean = at >= tokens.length
  override def offset: Int = at
  override def pos: Position = TokenPosition(first.start)
}

/**
 * The position of a token. The parser combinators compare positions to find and report the failure
 * that is furthest into the text.
 */
private[pyzorder] final case class TokenPosition(start: Int) extends Position {
  override def line: Int = 1
  override def column: Int = start + 1
  override protected def lineContents: String = ""
  override def <(that: Position): Boolean = that match {
    case TokenPosition(other) => start < other
    case _ => true
  }
}
