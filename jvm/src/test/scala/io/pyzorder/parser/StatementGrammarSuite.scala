package io.pyzorder.parser

import org.scalatest.funsuite.AnyFunSuite

class StatementGrammarSuite extends AnyFunSuite {

  private val t = NamedTarget(Seq("t"))

  private def optimize(
      target: ParsedTarget = t,
      full: Boolean = false,
      by: Seq[Seq[String]] = Nil,
      isWord: Boolean = false,
      dryRun: Boolean = false): ParsedStatement =
    ParsedOptimize(target, full, None, by.map(Right(_)), isWord, dryRun)

  private val taken = Seq[(String, ParsedStatement)](
    "OPTIMIZE t" -> optimize(),
    "optimize table db.t full" -> optimize(NamedTarget(Seq("db", "t")), full = true),
    "OPTIMIZE t ZORDER BY (a, b.c)" -> optimize(by = Seq(Seq("a"), Seq("b", "c"))),
    "OPTIMIZE t ZORDER BY Auto" -> optimize(by = Seq(Seq("Auto")), isWord = true),
    "OPTIMIZE t ZORDER BY AUTO DRY RUN" ->
      optimize(by = Seq(Seq("AUTO")), isWord = true, dryRun = true),
    "OPTIMIZE t ZORDER BY (auto)" -> optimize(by = Seq(Seq("auto"))),
    "OPTIMIZE t ZORDER BY `auto`" -> optimize(by = Seq(Seq("auto"))),
    "OPTIMIZE t ZORDER BY auto, b" -> optimize(by = Seq(Seq("auto"), Seq("b"))),
    "OPTIMIZE t ZORDER BY auto.x" -> optimize(by = Seq(Seq("auto", "x"))),
    "OPTIMIZE t ZORDER BY (lower(a), b, c < d)" ->
      ParsedOptimize(
        t, full = false, None, Seq(Left(22 -> 30), Right(Seq("b")), Left(35 -> 40)),
        isWord = false, dryRun = false),
    "OPTIMIZE t DRY RUN" -> optimize(dryRun = true),
    "CREATE SKIPPING INDEX ON t" -> ParsedCreateIndex(t, ifNotExists = false, Nil),
    "REFRESH SKIPPING INDEX ON TABLE t" -> ParsedRefreshIndex(t),
    "DESC SKIPPING INDEX ON t" -> ParsedDescribeIndex(t),
    "DROP SKIPPING INDEX IF EXISTS ON t" -> ParsedDropIndex(t, ifExists = true),
    "VACUUM t RETAIN 12 HOURS" -> ParsedVacuum(t, Some(12), dryRun = false),
    "RESTORE t TO BEFORE OPTIMIZE" -> ParsedRestore(t))

  for ((sql, expected) <- taken)
    test(sql) { assert(StatementGrammar.parse(sql) == Right(expected)) }

  private val refused = Seq(
    "OPTIMIZE", "OPTIMIZE t ZORDER BY ()", "OPTIMIZE t ZORDER BY lower(a)",
    "OPTIMIZE t ZORDER BY (a;)", "OPTIMIZE t ZORDER (a)", "OPTIMIZE t FULL FULL",
    "VACUUM t RETAIN HOURS", "RESTORE t TO", "CREATE SKIPPING INDEX t")

  for (sql <- refused) test(s"refused: $sql") { assert(StatementGrammar.parse(sql).isLeft) }
}
