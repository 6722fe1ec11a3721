"""The keys on the broadcast side of a join skip files, unless the join must read all files.

To add a case, add a query to CASES. Also add the number of files that each scan of `fact` opens.
`fact.k` and the other keys count from 0 to 199, with ten values per file. `dim` has the same keys.
Queries select some of the keys in `dim` by its column `tag`. Every answer is compared with the
answer without skipping.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyzorder
from tests.support.indexes import build
from tests.support.joins import checked, counts, rows, scans_of, select_list
from tests.support.scans import plain, settings

ALL = 20
FACT = """
    CAST(id AS INT) AS k, id AS l, format_string('s%05d', id) AS s,
    date_add(date'2020-01-01', CAST(id AS INT)) AS d, CAST(id AS DECIMAL(10, 2)) AS c,
    CAST(id AS DECIMAL(38, 2)) AS wide, CAST(id AS SMALLINT) AS small, CAST(id % 7 AS INT) AS m,
    CASE id WHEN 50 THEN double('NaN') WHEN 60 THEN double('-0.0') WHEN 70 THEN 0.0D
            ELSE double(id) END AS x,
    CASE id WHEN 50 THEN float('NaN') ELSE float(id) END AS f,
    CASE WHEN id % 10 = 3 OR id >= 190 THEN NULL ELSE CAST(id AS INT) END AS n,
    named_struct('k', CAST(id AS INT)) AS st, timestamp_seconds(id * 86400) AS ts,
    encode(format_string('s%05d', id), 'utf-8') AS bin, repeat(uuid(), 20) AS weight
"""
DIM = """
    CAST(id AS INT) AS k, id AS l, format_string('s%05d', id) AS s,
    date_add(date'2020-01-01', CAST(id AS INT)) AS d,
    CAST(date_add(date'2020-01-01', CAST(id AS INT)) AS TIMESTAMP) AS midnight,
    CAST(id AS DECIMAL(10, 2)) AS c, CAST(id AS DECIMAL(12, 2)) AS c12,
    CAST(id AS DECIMAL(38, 2)) AS wide, CAST(id AS SMALLINT) AS small,
    CASE id WHEN 50 THEN double('NaN') WHEN 60 THEN double('-0.0') WHEN 70 THEN 0.0D
            ELSE double(id) END AS x,
    CASE id WHEN 50 THEN float('NaN') ELSE float(id) END AS f,
    CASE WHEN id % 10 = 3 THEN NULL ELSE CAST(id AS INT) END AS n,
    named_struct('k', CAST(id AS INT)) AS st, timestamp_seconds(id * 86400) AS ts,
    encode(format_string('s%05d', id), 'utf-8') AS bin, CAST(id AS INT) AS tag
"""


@dataclass(frozen=True)
class Case:
    """A query, and how many files each of its scans of `fact` opens, in ascending order."""

    name: str
    sql: str
    opened: tuple[int, ...]


def prunes(name: str, sql: str, *opened: int) -> Case:
    """A case in which join keys skip files. By default, 2 files are opened (for keys 5, 7 and
    105)."""
    return Case(name, sql, opened or (2,))


def keeps(name: str, sql: str, *opened: int) -> Case:
    """A case in which join keys must not skip any file."""
    return Case(name, sql, opened or (ALL,))


SOME = "(SELECT * FROM dim WHERE tag IN (5, 7, 105))"
CASES = [
    # Joins that drop unmatched rows of `fact`.
    prunes("inner", f"SELECT fact.k, fact.s FROM fact JOIN {SOME} q ON fact.k = q.k"),
    prunes("inner, fact on the right", f"SELECT fact.k FROM {SOME} q JOIN fact ON fact.k = q.k"),
    prunes("comma", f"SELECT fact.k FROM fact, {SOME} q WHERE fact.k = q.k AND fact.m >= 0"),
    prunes("using", f"SELECT k, m FROM fact JOIN (SELECT k FROM {SOME}) USING (k)"),
    prunes("left semi", f"SELECT k FROM fact LEFT SEMI JOIN {SOME} q ON fact.k = q.k"),
    prunes("in subquery", f"SELECT k FROM fact WHERE k IN (SELECT k FROM {SOME})"),
    prunes("exists", f"SELECT k FROM fact WHERE EXISTS (SELECT 1 FROM {SOME} q WHERE q.k = fact.k)"),
    prunes("another condition", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.k = q.k AND m < q.l"),
    prunes("an aggregate above", f"SELECT sum(m), count(*) FROM fact JOIN {SOME} q ON fact.k = q.k"),
    prunes("a window above", f"SELECT k, rank() OVER (ORDER BY k) r FROM fact JOIN {SOME} USING (k)"),
    prunes("a filter on fact and join keys",
           f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.k = q.k WHERE fact.k < 50", 1),
    # Operators that are allowed between the scan and the join.
    prunes("renamed", f"SELECT a FROM (SELECT k + 0 AS z, k AS a FROM fact) JOIN {SOME} q ON a = q.k"),
    prunes("widened below",
           f"SELECT a FROM (SELECT CAST(k AS BIGINT) AS a, m FROM fact) JOIN {SOME} q ON a = q.l"),
    prunes("a filter between", f"SELECT k FROM (SELECT * FROM fact WHERE m < 6) JOIN {SOME} USING (k)"),
    prunes("union", f"SELECT k FROM (SELECT k FROM fact UNION ALL SELECT l FROM dim) JOIN {SOME} USING (k)"),
    prunes("union whose branches name the key differently", f"""
        SELECT a, f.m FROM (SELECT k AS a, m FROM fact WHERE m < 6 UNION ALL SELECT small, m FROM fact
        UNION ALL SELECT m, m FROM fact) f JOIN {SOME} q ON a = q.k""", 2, 2, ALL),
    prunes("union that swaps columns", f"""
        SELECT a, b FROM (SELECT k AS a, m AS b FROM fact UNION ALL SELECT m, k FROM fact)
        JOIN {SOME} q ON a = q.k""", 2, ALL),
    prunes("union with one column twice", f"""
        SELECT a, b FROM (SELECT k AS a, k AS b FROM fact UNION ALL SELECT m, k FROM fact)
        JOIN {SOME} q ON b = q.k""", 2, 2),
    prunes("distinct keys", f"SELECT k FROM (SELECT DISTINCT k FROM fact) JOIN {SOME} USING (k)"),
    prunes("union without duplicates", f"""
        SELECT k FROM (SELECT k FROM fact UNION SELECT small FROM fact) JOIN {SOME} USING (k)""", 2, 2),
    prunes("sorted below", f"SELECT k FROM (SELECT k FROM fact DISTRIBUTE BY k SORT BY m) JOIN {SOME} USING (k)"),
    prunes("aggregate by the key",
           f"SELECT k, v FROM (SELECT k, sum(m) AS v FROM fact GROUP BY k) JOIN {SOME} USING (k)"),
    prunes("aggregate by a floating-point key",
           f"SELECT x, v FROM (SELECT x, sum(m) AS v FROM fact GROUP BY x) JOIN {SOME} USING (x)", 4),
    prunes("aggregate by a renamed key", f"""
        SELECT a, v FROM (SELECT k AS a, d, max(s) AS v FROM fact GROUP BY k, d) JOIN {SOME} q ON a = q.k"""),
    keeps("rollup by the key", f"""
        SELECT k, v FROM (SELECT k, sum(m) AS v FROM fact GROUP BY k WITH ROLLUP) JOIN {SOME} USING (k)"""),
    prunes("below a left outer join", f"""
        SELECT fact.k, o.s FROM fact LEFT JOIN (SELECT * FROM dim WHERE tag < 9) o ON fact.m = o.k
        JOIN {SOME} q ON fact.k = q.k"""),
    prunes("below a right outer join", f"""
        SELECT fact.k, o.s FROM (SELECT * FROM dim WHERE tag < 9) o RIGHT JOIN fact ON fact.m = o.k
        JOIN {SOME} q ON fact.k = q.k"""),
    prunes("below an anti join", f"""
        SELECT fact.k FROM fact LEFT ANTI JOIN (SELECT * FROM dim WHERE tag = 5) o ON fact.k = o.k
        JOIN {SOME} q ON fact.k = q.k"""),
    # Keys of different types, and combinations of keys.
    prunes("one key of several",
           f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.k = q.k AND fact.m + 1 = q.l % 7 + 1"),
    prunes("two INT keys, packed in a LONG",
           f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.k = q.k AND fact.m = q.k % 7"),
    prunes("two INT keys, the second in the index",
           f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.m + 0 = q.k % 7 AND fact.k = q.k"),
    prunes("negative INT keys, packed",
           "SELECT fact.k FROM fact JOIN (SELECT k - 10 AS a, k - 20 AS b FROM dim WHERE tag < 12) q "
           "ON fact.k = q.a AND fact.k - 10 = q.b", 1),
    prunes("SMALLINT and INT, packed",
           f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.small = q.small AND fact.k = q.k"),
    prunes("three keys",
           f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.k = q.k AND fact.s = q.s AND fact.d = q.d"),
    prunes("keys that exclude each other",
           "SELECT fact.k FROM fact JOIN (SELECT k, l + 100 AS l FROM dim WHERE tag < 9) q "
           "ON fact.k = q.k AND fact.l = q.l", 0),
    prunes("bigint", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.l = q.l"),
    prunes("smallint", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.small = q.small"),
    prunes("string", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.s = q.s"),
    prunes("binary", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.bin = q.bin"),
    prunes("date", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.d = q.d"),
    prunes("timestamp", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.ts = q.ts"),
    prunes("decimal", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.c = q.c"),
    prunes("wide decimal", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.wide = q.wide"),
    prunes("struct field", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.st.k = q.st.k"),
    # Bounds exclude NaN. File 5 contains NaN, so it is read if NaN is among the keys. Files 6 and 7
    # contain -0.0 and 0.0, so their ranges also include the keys 5 and 7.
    prunes("double", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.x = q.x", 4),
    prunes("NaN", "SELECT fact.k FROM fact JOIN (SELECT * FROM dim WHERE tag = 50) q "
           "ON fact.x = q.x", 1),
    prunes("NaN and numbers", "SELECT fact.k FROM fact JOIN (SELECT * FROM dim WHERE tag IN (5, 50)) q "
           "ON fact.x = q.x", 4),
    prunes("float NaN", "SELECT fact.k FROM fact JOIN (SELECT * FROM dim WHERE tag = 50) q "
           "ON fact.f = q.f", 1),
    prunes("-0.0 finds 0.0", "SELECT fact.k FROM fact JOIN (SELECT * FROM dim WHERE tag = 60) q "
           "ON fact.x = q.x", 3),
    prunes("0.0 finds -0.0", "SELECT fact.k FROM fact JOIN (SELECT * FROM dim WHERE tag = 70) q "
           "ON fact.x = q.x", 3),
    prunes("float as double", "SELECT fact.k FROM fact JOIN (SELECT double(f) AS x FROM dim "
           "WHERE tag IN (5, 50)) q ON fact.f = q.x", 2),
    prunes("nulls on both sides", "SELECT fact.k FROM fact JOIN (SELECT * FROM dim "
           "WHERE tag IN (3, 5, 13, 105)) q ON fact.n = q.n", 2),
    Case("only nulls on the broadcast side: Spark scans nothing",
         "SELECT fact.k FROM fact JOIN (SELECT * FROM dim WHERE tag IN (3, 13)) q ON fact.n = q.n", ()),
    prunes("cast of the fact's key", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.k = q.l"),
    prunes("cast of the dimension's key", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.l = q.k"),
    prunes("decimals of two precisions", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.c = q.c12"),
    prunes("date as timestamp", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.d = q.midnight"),
    keeps("a random value beside the groups", f"""
        SELECT q.k, r.v > 1 FROM {SOME} q
        JOIN (SELECT k, count(*) + rand(3) AS v FROM fact GROUP BY k) r ON q.k = r.k"""),
    keeps("numbers of the groups", f"""
        SELECT q.k, r.v FROM {SOME} q
        JOIN (SELECT k, monotonically_increasing_id() AS v FROM fact GROUP BY k) r ON q.k = r.k"""),
    keeps("a string cast to a number", f"SELECT fact.k FROM fact JOIN {SOME} q ON substr(fact.s, 2) = q.k"),
    keeps("a narrowing cast", f"SELECT fact.k FROM fact JOIN {SOME} q ON CAST(fact.l AS INT) = q.k"),
    keeps("an expression", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.k + 1 = q.k"),
    keeps("no equality", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.k < q.k"),
    keeps("null-safe keys", f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.n <=> q.n"),
    keeps("null-safe keys that match nulls", "SELECT fact.k FROM fact JOIN (SELECT * FROM dim "
          "WHERE tag IN (3, 5)) q ON fact.n <=> q.n"),
    prunes("null-safe beside =",
           f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.k = q.k AND fact.n <=> q.n"),
    # Joins that keep unmatched rows of `fact`.
    keeps("left outer, fact preserved", f"SELECT fact.k, q.k FROM fact LEFT JOIN {SOME} q ON fact.k = q.k"),
    keeps("right outer, fact preserved", f"SELECT fact.k, q.k FROM {SOME} q RIGHT JOIN fact ON fact.k = q.k"),
    keeps("left outer, fact supplies nulls: no broadcast",
          f"SELECT fact.k, q.k FROM {SOME} q LEFT JOIN fact ON fact.k = q.k"),
    keeps("right outer, fact supplies nulls: no broadcast",
          f"SELECT fact.k, q.k FROM fact RIGHT JOIN {SOME} q ON fact.k = q.k"),
    keeps("full outer", f"SELECT fact.k, q.k FROM fact FULL JOIN {SOME} q ON fact.k = q.k"),
    keeps("left anti", f"SELECT k FROM fact LEFT ANTI JOIN {SOME} q ON fact.k = q.k"),
    keeps("not in", f"SELECT k FROM fact WHERE n NOT IN (SELECT k FROM {SOME})"),
    Case("not in, with a null: Spark scans nothing",
         "SELECT k FROM fact WHERE n NOT IN (SELECT n FROM dim WHERE tag < 9)", ()),
    keeps("not exists", f"SELECT k FROM fact WHERE NOT EXISTS (SELECT 1 FROM {SOME} q WHERE q.k = fact.k)"),
    keeps("existence", f"SELECT k FROM fact WHERE m = 1 OR k IN (SELECT k FROM {SOME})"),
    keeps("the existence of a match as a value", f"SELECT k, k IN (SELECT k FROM {SOME}) AS found FROM fact"),
    keeps("scalar subquery", f"SELECT k, (SELECT max(l) FROM {SOME} q WHERE q.k = fact.k) AS v FROM fact"),
    # Operators whose results depend on rows without a match. No file may be skipped below these
    # operators.
    keeps("limit", f"SELECT k FROM (SELECT * FROM fact LIMIT 1000) JOIN {SOME} USING (k)"),
    keeps("ordered limit", f"SELECT k FROM (SELECT * FROM fact ORDER BY -k LIMIT 60) JOIN {SOME} USING (k)"),
    keeps("window", f"SELECT k, r FROM (SELECT k, row_number() OVER (ORDER BY k) AS r FROM fact) "
          f"JOIN {SOME} USING (k)"),
    keeps("window by the key", f"SELECT k, r FROM (SELECT k, sum(m) OVER (PARTITION BY m ORDER BY k) "
          f"AS r FROM fact) JOIN {SOME} USING (k)"),
    keeps("sample", f"SELECT k FROM (SELECT * FROM fact TABLESAMPLE (50 PERCENT) REPEATABLE (7)) "
          f"JOIN {SOME} USING (k)"),
    keeps("aggregate", f"SELECT * FROM (SELECT m AS k, count(*) AS n FROM fact GROUP BY m) "
          f"JOIN {SOME} USING (k)"),
    keeps("an outer join's aggregate", f"SELECT q.k, a.n FROM {SOME} q LEFT JOIN (SELECT max(-k) AS k, "
          "count(*) AS n FROM fact) a ON a.k = q.k"),
    keeps("distinct", f"SELECT k FROM (SELECT DISTINCT m AS k FROM fact) JOIN {SOME} USING (k)"),
    keeps("numbered rows", f"SELECT k FROM (SELECT k, monotonically_increasing_id() % 2 AS i FROM fact) "
          f"JOIN {SOME} USING (k) WHERE i < 2"),
    keeps("random numbers", f"SELECT k FROM (SELECT k FROM fact WHERE rand(7) < 0.9) JOIN {SOME} USING (k)"),
    keeps("explode", f"SELECT k FROM (SELECT k, explode(array(1, 2)) FROM fact) JOIN {SOME} USING (k)"),
    keeps("below a full outer join", f"""
        SELECT a.k, a.s FROM (SELECT fact.k, fact.m, o.s FROM fact FULL JOIN dim o ON fact.m = o.k) a
        LEFT SEMI JOIN {SOME} q ON a.m = q.k"""),
    # Queries with several scans of the same table.
    prunes("self-join", "SELECT a.k, b.s FROM fact a JOIN (SELECT * FROM fact WHERE k < 15) b "
           "ON a.k = b.k + 100", 2, 2),
    prunes("one fact, two dimensions of one join",
           f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.k = q.k "
           "JOIN (SELECT * FROM dim WHERE tag IN (105, 150)) r ON fact.l = r.l", 1),
    prunes("two joins of one fact with different dimensions", """
        SELECT 1 AS side, sum(fact.k) AS v FROM fact JOIN (SELECT * FROM dim WHERE tag = 5) q
            ON fact.k = q.k GROUP BY fact.m
        UNION ALL
        SELECT 2, sum(fact.k) FROM fact JOIN (SELECT * FROM dim WHERE tag IN (25, 45, 65)) q
            ON fact.k = q.k GROUP BY fact.m""", 1, 3),
    prunes("one of several scans without a join", """
        SELECT 1 AS side, sum(fact.k) AS v FROM fact JOIN (SELECT * FROM dim WHERE tag = 5) q
            ON fact.k = q.k GROUP BY fact.m
        UNION ALL SELECT 2, sum(k) FROM fact GROUP BY m""", 1, ALL),
    prunes("two joined sides of different dimensions", """
        SELECT a.m, a.v, b.v FROM
            (SELECT m, sum(f.k) AS v FROM fact f JOIN (SELECT * FROM dim WHERE tag < 20) q
                ON f.k = q.k GROUP BY m) a JOIN
            (SELECT m, sum(f.k) AS v FROM fact f JOIN (SELECT * FROM dim WHERE tag > 169) q
                ON f.k = q.k GROUP BY m) b ON a.m = b.m""", 2, 3),
    prunes("fact with a join and without one", f"""
        SELECT k FROM fact WHERE k IN (SELECT k FROM {SOME}) UNION ALL SELECT k FROM fact""", 2, ALL),
    # Different kinds of queries on the broadcast side.
    prunes("a dimension that is itself a join", f"""
        SELECT /*+ BROADCAST(z) */ fact.k FROM fact JOIN (SELECT q.k FROM {SOME} q
        JOIN dim r ON q.k = r.k WHERE r.l > 100) z ON fact.k = z.k""", 1),
    prunes("a dimension with a limit",
           f"SELECT fact.k FROM fact JOIN (SELECT * FROM {SOME} LIMIT 10) q ON fact.k = q.k"),
    prunes("rows listed in the query", "SELECT fact.k FROM fact JOIN (VALUES (5), (105)) AS q (k) "
           "ON fact.k = q.k"),
    Case("an empty dimension: Spark scans nothing",
         "SELECT fact.k FROM fact JOIN (SELECT * FROM dim WHERE tag = 5000) q ON fact.k = q.k", ()),
    prunes("an aggregated dimension",
           f"SELECT fact.k FROM fact JOIN (SELECT max(k) AS k FROM {SOME}) q ON fact.k = q.k", 1),
    prunes("many rows with few keys",
           "SELECT count(*) FROM fact JOIN (SELECT k % 2 + 5 AS k FROM dim) q ON fact.k = q.k", 1),
    prunes("every key", "SELECT fact.k FROM fact JOIN dim ON fact.k = dim.k", ALL),
]  # fmt: skip


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Creates `fact` with 20 indexed files, and a table `dim` that is small enough to be
    broadcast."""
    folder = Path(tmp_path_factory.mktemp("joins"))
    spark.range(0, 200, 1, ALL).selectExpr(*select_list(FACT)).write.parquet(str(folder / "fact"))
    spark.range(0, 200, 1, 1).selectExpr(*select_list(DIM)).write.parquet(str(folder / "dim"))
    build(spark, folder / "fact", "parquet")
    for name in ("fact", "dim"):
        spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{folder / name}'")
    yield folder
    for name in ("fact", "dim"):
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.variants(25)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_opened(spark: SparkSession, tables: Path, case: Case) -> None:
    assert counts(checked(spark, case.sql)) == case.opened


@pytest.mark.parametrize("case", CASES[::3], ids=lambda case: case.name)
def test_files_opened_without_adaptive_execution(
    spark: SparkSession, tables: Path, case: Case
) -> None:
    with settings(spark, spark__sql__adaptive__enabled="false"):
        found = counts(checked(spark, case.sql))
        if case.opened:
            assert found == case.opened
        else:
            assert found in ((0,), (ALL,)), "without adaptive execution, Spark plans the scan"


INNER = f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.k = q.k"


def test_skipping_disabled(spark: SparkSession, tables: Path) -> None:
    with plain(spark):
        df = checked(spark, INNER)
        assert counts(df) == (ALL,)
        assert scans_of(df)[0]["joinKeys"] == []


def test_a_plan_that_runs_twice_gives_the_same(spark: SparkSession, tables: Path) -> None:
    df = checked(spark, INNER)
    assert rows(df) == rows(df)
    assert counts(df) == (2,)


def test_a_query_planned_before_skipping_is_switched_off(spark: SparkSession, tables: Path) -> None:
    df = checked(spark, INNER)
    with plain(spark):
        assert counts(df) == (ALL,)


@pytest.mark.parametrize(
    ("limit", "opened", "text"),
    [
        ("3", 2, ["dim.k (3 values)"]),
        ("2", 2, ["dim.k (2 ranges)"]),
        ("1", 11, ["dim.k (1 range)"]),
        ("0", ALL, []),
    ],
)
def test_more_keys_than_the_limit(
    spark: SparkSession, tables: Path, limit: str, opened: int, text: list[str]
) -> None:
    with settings(spark, spark__sql__zorder__join__maxKeys=limit):
        df = checked(spark, INNER)
        assert counts(df) == (opened,)
        assert untimed(*scans_of(df)[0]["joinKeys"]) == text


def test_a_side_of_too_many_rows_is_not_looked_through(spark: SparkSession, tables: Path) -> None:
    query = "SELECT fact.k FROM fact JOIN (SELECT k FROM dim WHERE tag < 101) q ON fact.k = q.k"
    with settings(spark, spark__sql__zorder__join__maxKeys="1"):
        assert counts(checked(spark, query)) == (ALL,)
        assert counts(checked(spark, query.replace("101", "100"))) == (10,)


def test_a_range_that_ends_with_nan(spark: SparkSession, tables: Path) -> None:
    query = (
        "SELECT fact.k FROM fact JOIN (SELECT * FROM dim WHERE tag IN (50, 105, 195)) q "
        "ON fact.x = q.x"
    )
    with settings(spark, spark__sql__zorder__join__maxKeys="1"):
        assert counts(checked(spark, query)) == (11,)  # files from key 105 on, and the one with NaN


def test_explain_and_metrics_name_the_join(spark: SparkSession, tables: Path) -> None:
    df = spark.sql(INNER + " WHERE fact.k < 150")
    assert pyzorder.explain(df)[0].skipped == 5, "before it runs, only its filter skips files"
    df.collect()
    scan = next(scan for scan in pyzorder.explain(df) if scan.table == "fact")
    assert (scan.total, scan.selected, scan.skipped, scan.skipped_by_joins) == (ALL, 2, 18, 13)
    assert "  13 skipped by join keys of dim.k (3 values)" in untimed(*str(scan).splitlines())
    (plan,) = untimed(df._jdf.queryExecution().executedPlan().toString())
    assert (
        "ZOrderSkipping [fact: 2 of 20 files selected, 18 skipped, 0 unindexed; "
        "13 skipped by join keys of dim.k (3 values)]" in plan
    )
    assert metric(df, "filesSkippedByJoins") == 13


@pytest.mark.parametrize(
    ("sql", "reasons"),
    [
        (INNER, []),
        (INNER.replace("SELECT", "SELECT /*+ BROADCAST(fact) */", 1),
         ["join key k (this is the broadcast side, which is read before any key is known)"]),
        ("SELECT /*+ MERGE(fact) */ fact.k FROM fact JOIN dim ON fact.k = dim.k",
         ["join key k (both sides are read before any key is known, and the other side's key is neither in an index nor cheap to compute, because it has no condition)"]),
        (f"SELECT /*+ MERGE(fact) */ fact.k, q.s FROM fact LEFT JOIN {SOME} q ON fact.k = q.k",
         ["join key k (LEFT OUTER JOIN also needs unmatched rows)"]),
        (f"SELECT a, q.s FROM (SELECT k AS a FROM fact) LEFT JOIN {SOME} q ON a = q.k",
         ["join key k (LEFT OUTER JOIN also needs unmatched rows)"]),
        (f"SELECT k FROM fact WHERE m = 1 OR k IN (SELECT k FROM {SOME})",
         ["join key k (EXISTENCE JOIN also needs unmatched rows)"]),
        (f"SELECT fact.k FROM fact JOIN {SOME} q ON fact.k = q.k AND fact.m + 1 = q.l",
         ["join key CAST((m + 1) AS BIGINT) (the key is not in the index)"]),
        (f"SELECT k FROM (SELECT * FROM fact LIMIT 1000) JOIN {SOME} USING (k)",
         ["join key k (the scan starts before the key is known, and does not wait for it)"]),
    ],
)  # fmt: skip
def test_explain_says_why_a_join_gives_no_keys(
    spark: SparkSession, tables: Path, sql: str, reasons: list[str]
) -> None:
    df = spark.sql(sql)
    (scan,) = scans_of(df)
    if reasons == [] or "both sides" in reasons[0]:
        assert "not usable: join key k (known only after the query has run)" in scan["reasons"]
    df.collect()
    (scan,) = scans_of(df)
    told = [reason for reason in scan["reasons"] if "join key" in reason]
    assert told == [f"not usable: {reason}" for reason in reasons]


@pytest.mark.parametrize(("files", "skipped"), [(3, 0), (4, 3)])
def test_tiny_tables(
    spark: SparkSession, tables: Path, tmp_path: Path, files: int, skipped: int
) -> None:
    """Join keys are not worth finding if the table has only a few small files."""
    path = tmp_path / "tiny"
    spark.range(0, 10 * files, 1, files).selectExpr("CAST(id AS INT) AS k").write.parquet(str(path))
    spark.sql(f"CREATE SKIPPING INDEX ON '{path}'")
    df = spark.sql(
        f"SELECT tiny.k FROM parquet.`{path}` tiny JOIN dim ON tiny.k = dim.k WHERE dim.tag = 5"
    )
    assert [row.k for row in df.collect()] == [5]
    (scan,) = scans_of(df, "tiny")
    assert scan["skippedByJoins"] == skipped
    told = [reason for reason in scan["reasons"] if "join key" in reason]
    assert told == [] if skipped else "the table is so small" in told[0]


def untimed(*texts: str) -> list[str]:
    """The texts without the durations of broadcasts."""
    return [re.sub(r" after \d+ ms\b", "", text) for text in texts]


def metric(df: DataFrame, name: str) -> int:
    """A metric of the scan of `fact` in the final plan."""
    nodes: list[Any] = [df._jdf.queryExecution().executedPlan()]
    while nodes:
        node = nodes.pop()
        kind = node.nodeName()
        if kind == "ZOrderSkipping" and "[fact:" in node.simpleString(5):
            return int(node.metrics().apply(name).value())
        if kind == "AdaptiveSparkPlan":
            nodes.append(node.executedPlan())
        elif kind.endswith("QueryStage"):
            nodes.append(node.plan())
        else:
            nodes.extend(node.children().apply(i) for i in range(node.children().size()))
    raise AssertionError("no scan of fact")


def test_a_cte_used_twice(spark: SparkSession, tables: Path) -> None:
    query = f"""
        WITH c AS (SELECT fact.k, fact.m FROM fact JOIN {SOME} q ON fact.k = q.k)
        SELECT a.k, b.v FROM c a JOIN (SELECT m, count(*) AS v FROM c GROUP BY m) b ON a.m = b.m"""
    assert set(counts(checked(spark, query))) <= {2, ALL}
    # Spark estimates that the hash table of 3 rows takes up 32 MiB. The join's result then seems
    # too large to be broadcast, so Spark keeps the plan without a shuffle. In this plan, no files
    # are skipped. A hint avoids this plan.
    hinted = query.replace("SELECT a.k", "SELECT /*+ BROADCAST(a) */ a.k")
    assert set(counts(checked(spark, hinted))) == {2}


def test_scalar_subqueries_of_two_joins(spark: SparkSession, tables: Path) -> None:
    one = "(SELECT sum(fact.l) FROM fact JOIN dim ON fact.k = dim.k WHERE dim.tag IN ({}))"
    df = checked(spark, f"SELECT {one.format(5)}, {one.format('25, 45')}, {one.format(5)}")
    assert set(counts(df)) == {1, 2}


def test_a_cached_join_has_all_its_rows(spark: SparkSession, tables: Path) -> None:
    some = spark.sql(INNER).cache()
    try:
        assert sorted(row.k for row in some.collect()) == [5, 7, 105]
        assert spark.sql("SELECT k FROM fact").count() == 200
        assert spark.sql(INNER.replace("105", "106")).count() == 3
        other = spark.sql("SELECT fact.k FROM fact JOIN dim ON fact.k = dim.k WHERE dim.tag < 30")
        assert other.count() == 30
        assert some.join(other, "k").count() == 2
    finally:
        some.unpersist()


def test_a_cached_dimension(spark: SparkSession, tables: Path) -> None:
    spark.sql(f"CACHE TABLE cached_dim AS SELECT k, l FROM {SOME}")
    try:
        df = checked(spark, "SELECT fact.k FROM fact JOIN cached_dim q ON fact.k = q.k")
        assert counts(df) == (2,)
    finally:
        spark.sql("UNCACHE TABLE cached_dim")
        spark.catalog.dropTempView("cached_dim")


def test_observed_metrics_count_every_row(spark: SparkSession, tables: Path) -> None:
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    seen = Observation("all rows of fact")
    fact = spark.table("fact").observe(seen, f.count(f.lit(1)).alias("rows"))
    df = fact.join(spark.sql(f"SELECT k AS dk FROM {SOME}"), f.col("k") == f.col("dk"))
    assert df.count() == 3
    assert seen.get["rows"] == 200


def test_a_shuffled_join_that_becomes_a_broadcast_join(spark: SparkSession, tables: Path) -> None:
    with settings(
        spark,
        spark__sql__autoBroadcastJoinThreshold="-1",
        spark__sql__adaptive__autoBroadcastJoinThreshold="10MB",
    ):
        assert counts(checked(spark, INNER)) == (2,)
