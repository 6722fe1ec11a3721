package io.pyzorder.common

import scala.util.parsing.combinator.Parsers

/** The grammar of column names and column lists. */
trait NameGrammar extends Parsers {
  override type Elem = Token

  protected def columns: Parser[Seq[Seq[String]]] = parenthesised | rep1sep(column, sign(","))

  protected def parenthesised: Parser[Seq[Seq[String]]] =
    sign("(") ~> rep1sep(column, sign(",")) <~ sign(")")

  protected def column: Parser[Seq[String]] = name

  protected def name: Parser[Seq[String]] = rep1sep(namePart, sign("."))

  protected def namePart: Parser[String] = one("a name") {
    case Token(text, _, Token.Word) => text
    case Token(text, _, Token.BackQuoted) if text.length > 2 && text.endsWith("`") =>
      text.substring(1, text.length - 1).replace("``", "`")
  }

  protected def sign(text: String): Parser[Token] =
    one(s"'$text'") { case token @ Token(`text`, _, Token.Sign) => token }

  /** Parses one token, or fails with a message that says what was expected. */
  protected def one[T](expected: String)(meaning: PartialFunction[Token, T]): Parser[T] =
    Parser { in =>
      if (meaning.isDefinedAt(in.first)) Success(meaning(in.first), in.rest)
      else Failure(s"expected $expected", in)
    }

  /**
   * Runs a parser. On failure, Left contains the text at the furthest position reached and what was
   * expected there.
   */
  protected def run[T](parser: Parser[T], tokens: IndexedSeq[Token]): Either[(String, String), T] =
    phrase(parser)(new TokenReader(tokens, 0)) match {
      case Success(parsed, _) => Right(parsed)
      case failure: NoSuccess => Left((failure.next.first.text, failure.msg))
    }
}

/** Parses column lists that are not part of a statement. */
object ColumnNames extends NameGrammar {

  /** Parses a list such as `a, b.c`; parentheses are optional, as in ZORDER BY. */
  def parse(text: String): Seq[Seq[String]] =
    run(columns, Tokens.of(text)) match {
      case Right(parsed) => parsed
      case Left((near, expected)) => throw ZOrderErrors.syntax(near, expected, "a, b.c, …")
    }
}
