package io.pyzorder.common

import scala.util.parsing.combinator.Parsers

/** The grammar of column names, and of lists of columns and expressions. */
trait NameGrammar extends Parsers {
  override type Elem = Token

  /** An expression's start (inclusive) and end (exclusive) in the text, or a column's name. */
  type Item = Either[(Int, Int), Seq[String]]

  /** Parses columns and expressions in parentheses. */
  protected def items: Parser[Seq[Item]] = sign("(") ~> rep1sep(item, sign(",")) <~ sign(")")

  protected def item: Parser[Item] =
    name <~ guard(sign(",") | sign(")") | theEnd) ^^ (Right(_)) | expression ^^ (Left(_))

  /** Parses an expression, which ends before the first comma outside parentheses. */
  private def expression: Parser[(Int, Int)] =
    rep1(not(sign(",") | sign(";")) ~> balanced) ^^ (parts => (parts.head._1, parts.last._2))

  /** Parses a token that is not a parenthesis, or all tokens between two parentheses. */
  protected def balanced: Parser[(Int, Int)] =
    sign("(") ~ rep(balanced) ~ sign(")") ^^ { case open ~ _ ~ close => (open.start, close.end) } |
      one("a predicate or an expression") {
        case token if token != Token.end && token.text != "(" && token.text != ")" =>
          (token.start, token.end)
      }

  protected def theEnd: Parser[Any] = Parser { in =>
    if (in.atEnd || in.first.text == ";") Success((), in)
    else Failure("expected the end of the statement", in)
  }

  protected def columns: Parser[Seq[Seq[String]]] =
    sign("(") ~> rep1sep(name, sign(",")) <~ sign(")") | rep1sep(name, sign(","))

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

/** Parses lists of columns that are not part of a statement. */
object ColumnNames extends NameGrammar {

  /**
   * Parses a list of columns and expressions such as `a, lower(b.c)`; parentheses are optional.
   * Returns the text of each expression (Left) and the name of each column (Right).
   */
  def parseItems(text: String): Seq[Either[String, Seq[String]]] =
    run(items <~ theEnd | rep1sep(item, sign(",")), Tokens.of(text)) match {
      case Right(parsed) => textOf(parsed, text)
      case Left((near, expected)) => throw ZOrderErrors.syntax(near, expected, "a, lower(b.c), …")
    }

  /** Replaces the position of each expression in `text` with the expression. */
  def textOf(items: Seq[Item], text: String): Seq[Either[String, Seq[String]]] =
    items.map(_.left.map { case (start, end) => text.substring(start, end) })

  /** Parses a list such as `a, b.c`; parentheses are optional, as in ZORDER BY. */
  def parse(text: String): Seq[Seq[String]] =
    run(columns, Tokens.of(text)) match {
      case Right(parsed) => parsed
      case Left((near, expected)) => throw ZOrderErrors.syntax(near, expected, "a, b.c, …")
    }
}
