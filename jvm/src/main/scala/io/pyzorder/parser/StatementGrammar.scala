package io.pyzorder.parser

import io.pyzorder.common.{NameGrammar, Token, Tokens, ZOrderErrors, ZOrderException}

/** A parsed statement. ZOrderSqlParser turns it into a plan. */
sealed trait ParsedStatement

/** The target of a statement: the parts of a name, or a path as a quoted string literal. */
sealed trait ParsedTarget
final case class NamedTarget(parts: Seq[String]) extends ParsedTarget
final case class QuotedTarget(literal: String) extends ParsedTarget

/**
 * @param where    the predicate's start (inclusive) and end (exclusive) in the statement's text
 * @param zOrderBy for each column, its name, or the start and end of an expression
 * @param isWord   whether ZORDER BY is followed by the word AUTO, which may also be a column's name
 */
final case class ParsedOptimize(
    target: ParsedTarget,
    full: Boolean,
    where: Option[(Int, Int)],
    zOrderBy: Seq[Either[(Int, Int), Seq[String]]],
    isWord: Boolean,
    dryRun: Boolean)
    extends ParsedStatement

/**
 * @param columns for each column, its name, or the start (inclusive) and end (exclusive) of an
 *                expression in the statement's text
 */
final case class ParsedCreateIndex(
    target: ParsedTarget,
    ifNotExists: Boolean,
    columns: Seq[Either[(Int, Int), Seq[String]]])
    extends ParsedStatement
final case class ParsedRefreshIndex(target: ParsedTarget) extends ParsedStatement
final case class ParsedDescribeIndex(target: ParsedTarget) extends ParsedStatement
final case class ParsedDropIndex(target: ParsedTarget, ifExists: Boolean) extends ParsedStatement
final case class ParsedVacuum(target: ParsedTarget, retainHours: Option[Int], dryRun: Boolean)
    extends ParsedStatement
final case class ParsedRestore(target: ParsedTarget) extends ParsedStatement

/**
 * The grammar of pyzorder's statements. No keyword is reserved: every keyword may also be used as a
 * name.
 */
object StatementGrammar extends NameGrammar {

  /**
   * The syntax of each statement, keyed by the statement's first word. DESC is listed under
   * DESCRIBE.
   */
  val usages: Map[String, String] = Map(
    "OPTIMIZE" -> ("OPTIMIZE [TABLE] target [FULL] [WHERE partition_predicate] " +
      "[ZORDER BY {(column or expression, …) | AUTO}] [DRY RUN]"),
    "CREATE" -> ("CREATE SKIPPING INDEX [IF NOT EXISTS] ON [TABLE] target " +
      "[(column or expression, …)]"),
    "REFRESH" -> "REFRESH SKIPPING INDEX ON [TABLE] target",
    "DESCRIBE" -> "DESCRIBE SKIPPING INDEX ON [TABLE] target",
    "DROP" -> "DROP SKIPPING INDEX [IF EXISTS] ON [TABLE] target",
    "VACUUM" -> "VACUUM [TABLE] target [RETAIN n HOURS] [DRY RUN]",
    "RESTORE" -> "RESTORE [TABLE] target TO BEFORE OPTIMIZE")

  /** Parses a complete statement. If parsing fails, the error in Left says where. */
  def parse(sql: String): Either[ZOrderException, ParsedStatement] = {
    val tokens = Tokens.of(sql)
    run(statement, tokens) match {
      case Right(parsed) => Right(parsed)
      case Left((near, expected)) =>
        val first = tokens.head.text.toUpperCase(java.util.Locale.ROOT)
        Left(ZOrderErrors.syntax(near, expected,
            usages(if (first == "DESC") "DESCRIBE" else first)))
    }
  }

  /** Parses a target outside a statement, such as the argument of skipping_index('db.t'). */
  def target(text: String): ParsedTarget =
    run(target, Tokens.of(text)) match {
      case Right(parsed) => parsed
      case Left((near, expected)) =>
        throw ZOrderErrors.syntax(near, expected,
          "[[catalog.]database.]table, 'path', " +
            "parquet.`path` or orc.`path`")
    }

  // ---- statements -----------------------------------------------------------------------------

  private def statement: Parser[ParsedStatement] =
    (optimize | createIndex | refreshIndex | describeIndex | dropIndex | vacuum | restore) <~
      rep(sign(";").withFailureMessage("expected the end: only one statement can run at a time"))

  private def optimize: Parser[ParsedStatement] =
    words("OPTIMIZE") ~> onTable { target =>
      flag("FULL") ~ opt(words("WHERE") ~> predicate) ~ opt(words("ZORDER", "BY") ~> clustering) ~
        flag("DRY", "RUN") <~ theEnd ^^ { case full ~ where ~ zOrderBy ~ dryRun =>
          val (columns, isWord) = zOrderBy.getOrElse((Nil, false))
          ParsedOptimize(target, full, where, columns, isWord, dryRun)
        }
    }

  /**
   * Parses what follows ZORDER BY: the word AUTO, columns and expressions in parentheses, or
   * columns without parentheses.
   */
  private def clustering: Parser[(Seq[Item], Boolean)] =
    word("AUTO") <~ guard(words("DRY", "RUN") | theEnd) ^^ (auto =>
      (Seq(Right(Seq(auto.text))), true)) |
      (items | columns ^^ (_.map(Right(_)))) ^^ (listed => (listed, false))

  private def createIndex: Parser[ParsedStatement] =
    words("CREATE", "SKIPPING", "INDEX") ~> flag("IF", "NOT", "EXISTS") >> { ifNotExists =>
      words("ON") ~> onTable { target =>
        opt(items) <~ theEnd ^^ { columns =>
          ParsedCreateIndex(target, ifNotExists, columns.getOrElse(Nil))
        }
      }
    }

  private def refreshIndex: Parser[ParsedStatement] =
    words("REFRESH", "SKIPPING", "INDEX", "ON") ~> onTable { target =>
      theEnd ^^^ ParsedRefreshIndex(target)
    }

  private def describeIndex: Parser[ParsedStatement] =
    (word("DESCRIBE") | word("DESC")) ~> words("SKIPPING", "INDEX", "ON") ~> onTable { target =>
      theEnd ^^^ ParsedDescribeIndex(target)
    }

  private def dropIndex: Parser[ParsedStatement] =
    words("DROP", "SKIPPING", "INDEX") ~> flag("IF", "EXISTS") >> { ifExists =>
      words("ON") ~> onTable { target => theEnd ^^^ ParsedDropIndex(target, ifExists) }
    }

  private def vacuum: Parser[ParsedStatement] =
    words("VACUUM") ~> onTable { target =>
      opt(retention) ~ flag("DRY", "RUN") <~ theEnd ^^ {
        case retain ~ dryRun => ParsedVacuum(target, retain, dryRun)
      }
    }

  private def retention: Parser[Int] =
    words("RETAIN") ~> hours <~ (word("HOURS") | word("HOUR"))

  private def restore: Parser[ParsedStatement] =
    words("RESTORE") ~> onTable { target =>
      words("TO", "BEFORE", "OPTIMIZE") ~> theEnd ^^^ ParsedRestore(target)
    }

  // ---- parts of statements --------------------------------------------------------------------

  /**
   * Parses `[TABLE] target rest`. If this fails with TABLE as a keyword, tries TABLE as the
   * target's name, because a table may be called "table".
   */
  private def onTable[T](rest: ParsedTarget => Parser[T]): Parser[T] =
    (words("TABLE") ~> target >> rest) | (target >> rest)

  private def target: Parser[ParsedTarget] =
    name ^^ NamedTarget.apply | one("a table name or a path in quotes") {
      case Token(text, _, Token.Quoted) => QuotedTarget(text)
    }

  /**
   * Parses a predicate. It ends before the first semicolon, `ZORDER BY` or final `DRY RUN` outside
   * parentheses, or else at the end of the text.
   */
  private def predicate: Parser[(Int, Int)] =
    rep1(not(afterPredicate).withFailureMessage("expected a predicate") ~> balanced) ^^ { parts =>
      (parts.head._1, parts.last._2)
    }

  private def afterPredicate: Parser[Any] =
    words("ZORDER", "BY") | words("DRY", "RUN") ~ theEnd | sign(";")

  private def hours: Parser[Int] = one("a whole number of hours") {
    case Token(text, _, Token.Word) if text.matches("\\d{1,9}") => text.toInt
  }

  private def flag(keywords: String*): Parser[Boolean] =
    opt(words(keywords: _*)) ^^ (_.isDefined)

  private def words(keywords: String*): Parser[Any] =
    keywords.map(word(_): Parser[Any]).reduceLeft((a, b) => a ~ b)

  private def word(keyword: String): Parser[Token] =
    one(keyword) { case token if token.is(keyword) => token }
}
