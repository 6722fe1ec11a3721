"""`fallback.sql` gives the same answers as plain Spark, and opens fewer files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyzorder import fallback
from pyzorder.errors import ZOrderError
from tests.support import indexes, scans
from tests.support.fallback_files import kept, opened, selection
from tests.support.tables import data_files, rows_of

# query | how many files are skipped in t and u together. Each table has eight files. t.a and u.a
# are 0 to 9 in the first file, 10 to 19 in the second, and so on. t.p is null in the third file.
CASES = """
SELECT * FROM t WHERE a = 25 | 7
SELECT * FROM q.t WHERE a = 25 | 7
SELECT * FROM t x WHERE x.a = 25 | 7
SELECT * FROM t AS x WHERE 25 = x.a AND p IS NULL | 7
SELECT t.a FROM t WHERE t.a BETWEEN 20 AND 35 ORDER BY 1 | 6
SELECT q.t.a FROM q.t WHERE q.t.a = 25 | 0
SELECT count(*) FROM t WHERE a = 25 GROUP BY s HAVING count(*) > 0 | 7
SELECT * FROM t JOIN u ON t.a = u.a WHERE t.a = 25 | 7
SELECT * FROM t JOIN u USING (a) WHERE t.s = 's25' AND u.k < 15 | 6
SELECT * FROM t JOIN u USING (a) WHERE a = 25 | 7
SELECT * FROM t NATURAL JOIN u WHERE a = 25 | 0
SELECT * FROM t, u WHERE t.a = u.a AND t.a = 25 AND u.a = 25 | 14
SELECT * FROM t JOIN u ON t.a = u.a AND u.a = 25 | 7
SELECT * FROM t LEFT JOIN u ON t.a = u.a AND u.a = 25 | 7
SELECT * FROM t LEFT JOIN u ON t.a = u.a AND t.a = 25 | 0
SELECT * FROM t LEFT JOIN u ON t.a = u.a WHERE u.s IS NULL | 0
SELECT * FROM t LEFT JOIN u ON t.a = u.a WHERE t.a = 25 | 7
SELECT * FROM t RIGHT JOIN u ON t.a = u.a WHERE t.p IS NULL AND u.a = 25 | 7
SELECT * FROM t FULL JOIN u ON t.a = u.a WHERE t.a = 25 OR u.a = 25 | 0
SELECT * FROM t FULL JOIN u ON t.a = u.a AND t.a = 25 | 0
SELECT * FROM t LEFT SEMI JOIN u ON t.a = u.a AND u.a = 25 | 7
SELECT * FROM t LEFT ANTI JOIN u ON t.a = u.a AND u.a = 25 | 7
SELECT * FROM t LEFT ANTI JOIN u ON t.k = u.a WHERE a = 25 | 7
SELECT * FROM t LEFT SEMI JOIN u ON t.k = u.a WHERE a = 25 | 7
SELECT * FROM t LEFT SEMI JOIN u ON t.k = u.a JOIN v ON v.k = t.k AND t.a = 25 | 7
SELECT * FROM (SELECT * FROM t LEFT ANTI JOIN u ON t.k = u.a) x WHERE a = 25 | 0
SELECT * FROM t x JOIN t y ON x.a = y.k WHERE x.a = 25 AND y.a > 60 | 13
WITH c AS (SELECT * FROM t WHERE a = 25) SELECT * FROM c JOIN u USING (a) | 7
WITH t AS (SELECT 25 AS a) SELECT * FROM t WHERE a = 25 | 0
WITH t AS (SELECT * FROM q.t WHERE a < 10) SELECT * FROM t WHERE a = 25 | 8
SELECT * FROM (SELECT * FROM t WHERE a = 25) x | 7
SELECT * FROM (SELECT * FROM t) x WHERE a = 25 | 7
SELECT * FROM (SELECT *, a AS b FROM t) x WHERE x.b = 25 | 0
SELECT * FROM (SELECT a AS b, s FROM t) x WHERE x.b = 25 AND s > 'a' | 7
SELECT * FROM (SELECT t.a AS b, t.n FROM t JOIN u USING (a)) x WHERE x.b = 25 AND x.n.x < 5 | 7
SELECT * FROM (SELECT n FROM t) x WHERE x.n.x = 5 | 7
SELECT * FROM (SELECT max(a) AS a FROM t) x WHERE a = 25 | 0
SELECT * FROM (SELECT a + 1 AS a FROM t) x WHERE a = 25 | 0
SELECT * FROM (SELECT a FROM t LIMIT 5) x WHERE a = 25 | 0
SELECT * FROM (SELECT DISTINCT a FROM t) x WHERE a = 25 | 0
SELECT * FROM u LEFT JOIN (SELECT * FROM t) x ON u.a = x.a WHERE x.a = 25 | 0
SELECT * FROM u LEFT JOIN (SELECT * FROM t) x ON u.a = x.a AND x.a = 25 | 7
SELECT * FROM (SELECT * FROM t) AS x(b, c, d, e, f) WHERE b = 25 | 0
WITH c AS (SELECT * FROM t) SELECT * FROM c WHERE a = 25 | 7
WITH c(k, a) AS (SELECT a, k FROM t) SELECT * FROM c WHERE a = 15 | 0
WITH c(k, a) AS (SELECT a, k FROM t) SELECT * FROM c WHERE k = 25 | 0
FROM t |> WHERE a > 25 |> ORDER BY a |> LIMIT 5 |> WHERE a > 26 | 0
WITH c AS (SELECT * FROM t), d AS (SELECT a AS b FROM c) SELECT * FROM d WHERE b = 25 | 7
WITH c AS (SELECT * FROM t) SELECT * FROM c x JOIN c y USING (a) WHERE x.a = 25 | 0
WITH c AS (SELECT * FROM t WHERE a < 30) SELECT * FROM c x JOIN u ON x.a = u.a WHERE x.a = 25 | 7
SELECT (SELECT min(a) FROM t WHERE a < 10), (SELECT max(a) FROM t) | 7
SELECT * FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.a = u.a AND t.a = 25) | 7
SELECT * FROM u WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.a = u.a AND t.a = 25) | 7
SELECT * FROM u WHERE u.a NOT IN (SELECT a FROM t WHERE a = 25) AND u.a < 30 | 12
SELECT * FROM u WHERE u.a IN (SELECT k FROM t) | 0
SELECT * FROM t WHERE a = 25 UNION ALL SELECT * FROM u WHERE a < 5 | 14
SELECT * FROM t WHERE a = 25 EXCEPT SELECT * FROM t WHERE a = 25 AND s > 't' | 15
SELECT x.*, v FROM t x LATERAL VIEW explode(array(1, 2)) e AS v WHERE x.a = 25 | 7
SELECT * FROM t LATERAL VIEW explode(array(99)) n AS x WHERE n.x = 99 | 0
SELECT * FROM t x LATERAL VIEW explode(array(99)) x AS v WHERE x.v = 99 AND x.a = 25 | 0
SELECT * FROM t LATERAL VIEW OUTER posexplode(array(9)) n AS k2, x WHERE n.x = 9 AND n.k2 = 0 | 0
SELECT /*+ BROADCAST(u) */ * FROM t JOIN u ON t.a = u.a WHERE u.a = 25 | 7
SELECT *, row_number() OVER (ORDER BY a) AS n FROM t WHERE a < 30 | 5
SELECT * FROM t TABLESAMPLE (100 PERCENT) WHERE a = 25 | 0
SELECT * FROM t AS x(b, c, d, e, f) WHERE b = 25 | 0
SELECT * FROM (t JOIN u USING (a)) WHERE a = 25 | 0
SELECT a, _metadata.file_size > 0 FROM t WHERE a = 25 | 0
SELECT input_file_name() = '' FROM t WHERE a = 25 | 7
SELECT * FROM v WHERE a = 25 | 0
SELECT * FROM t WHERE a = 25 OR rand() > 2 | 0
SELECT * FROM t WHERE a = (SELECT 25) | 0
SELECT * FROM t WHERE A = 25 AND T.S = 's25' | 7
SELECT * FROM t WHERE n.x = 5 | 7
SELECT * FROM t x WHERE x.n.x = 5 AND n.`x` = 5 | 7
SELECT * FROM parquet.`{t}` WHERE a = 25 | 7
SELECT * FROM t WHERE a = "25" | 0
SELECT 1 AS one | 0
"""

COLUMNS = "int(id % 10 + {k} * 10) AS a; concat('s', id % 10 + {k} * 10) AS s; " \
          "named_struct('x', int({k})) AS n; if({k} = 2, NULL, 1) AS p; int(id) AS k"  # fmt: skip


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a database. It contains the tables t and u, which have eight files each, and a
    view v of t."""
    folder = tmp_path_factory.mktemp("queries")
    spark.sql(f"CREATE DATABASE q LOCATION '{folder}'")
    spark.sql("USE q")
    for name in ("t", "u"):
        for k in range(8):
            rows = spark.range(0, 20, 1, 1).selectExpr(*COLUMNS.format(k=k).split("; "))
            rows.write.mode("append").saveAsTable(name)
        spark.sql(f"CREATE SKIPPING INDEX ON {name}")
    spark.sql("CREATE VIEW v AS SELECT * FROM t")
    yield folder
    spark.sql("USE default")
    spark.sql("DROP DATABASE q CASCADE")


def cases() -> list[object]:
    """Returns the lines of CASES as test parameters. `make test` runs only every ninth line."""
    lines = CASES.strip().splitlines()
    return [
        line if number % 9 == 0 else pytest.param(line, marks=pytest.mark.fallback)
        for number, line in enumerate(lines)
    ]


@pytest.mark.parametrize("line", cases())
def test_answers_of_plain_spark(spark: SparkSession, tables: Path, line: str) -> None:
    query, _, left_out = line.format(t=tables / "t").rpartition(" | ")
    if "|>" in query and spark.version < "4":
        pytest.skip("|> needs Spark 4")
    told = fallback.explain(spark, query)
    found = fallback.sql(spark, query)
    with scans.plain(spark), interpreted(spark):
        expected = spark.sql(query)
        assert found.schema == expected.schema
        assert Counter(map(repr, found.collect())) == Counter(map(repr, expected.collect()))
    assert sum(len(s.skipped) for s in told) == int(left_out), [str(s) for s in told]


def interpreted(spark: SparkSession) -> Any:
    """Turns off code generation, because it costs more time than it saves in queries that run
    once."""
    return scans.settings(
        spark,
        spark__sql__codegen__wholeStage="false",
        spark__sql__codegen__factoryMode="NO_CODEGEN",
    )


def test_files_are_not_opened(spark: SparkSession, tables: Path) -> None:
    found = fallback.sql(spark, "SELECT * FROM t WHERE a = 25")
    read = fallback.read(spark, str(tables / "t")).where("a = 25")
    with scans.plain(spark):
        assert opened(spark.sql("SELECT * FROM t WHERE a = 25")) == 8
        assert opened(found) == opened(read) == 1


#: Conditions on i INT and d DOUBLE. Without ANSI mode, a string that is not a number becomes NULL.
WITHOUT_ANSI = [
    "i <=> 'abc'", "NOT (i <=> 'abc')", "i <=> '16777217'", "d <=> 'abc'", "i IN ('abc', '3')",
    "d IN (16777217, 1.5F)", "d NOT IN (99999999999999999999999999999999999999, 0.5)",
]  # fmt: skip


def test_without_ansi(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    for value in ("NULL", "16777217", "0.5"):
        row = spark.sql(f"SELECT CAST({value} AS INT) AS i, CAST({value} AS DOUBLE) AS d")
        row.coalesce(1).write.mode("append").parquet(str(table))
    with scans.settings(spark, spark__sql__ansi__enabled="false"):
        fallback.create_index(spark, str(table))
        for predicate in WITHOUT_ANSI:
            found = fallback.read(spark, str(table)).where(predicate)
            with scans.plain(spark):
                expected = spark.read.parquet(str(table)).where(predicate)
                assert rows_of(found) == rows_of(expected), predicate


@pytest.mark.fallback
def test_long_conditions(spark: SparkSession, tables: Path) -> None:
    many = " OR ".join(f"a = {25 + 100 * k}" for k in range(500))
    assert fallback.sql(spark, f"SELECT * FROM t WHERE a < 30 AND ({many})").count() == 2
    some = " AND ".join(f"a != {100 + k}" for k in range(500))
    found = fallback.explain(spark, f"SELECT * FROM t WHERE {some} AND a = 25")
    assert len(found[0].skipped) == 7


@pytest.mark.parametrize("spelling", ["{0}/./t/", "{0}//t", "file:{0}/t", "{0}/o'brien/t"])
def test_spellings_of_a_path(spark: SparkSession, tmp_path: Path, spelling: str) -> None:
    path = spelling.format(tmp_path)
    for k in range(3):
        spark.range(k * 10, k * 10 + 10, 1, 1).toDF("a").write.mode("append").parquet(path)
        indexed = fallback.refresh_index if k else fallback.create_index
        assert indexed(spark, path) == k + 1
    if "'" not in path:
        assert len(fallback.read(spark, path).select_files("a = 25").skipped) == 2
    assert fallback.read(spark, path).where("a = 25").count() == 1


def test_parameters(spark: SparkSession, tables: Path) -> None:
    query = "SELECT * FROM t WHERE a = 25 AND k < :most"
    assert fallback.sql(spark, query, {"most": 10}).count() == 1


def test_a_statement_that_is_no_query(spark: SparkSession, tables: Path) -> None:
    assert fallback.sql(spark, "SHOW TABLES IN q").where("NOT isTemporary").count() == 3


def put_in_place(source: Path, target: Path) -> None:
    """Replaces a file, and deletes Hadoop's checksum of the old file."""
    source.replace(target)
    target.with_name(f".{target.name}.crc").unlink()


# Changes that are made after the table has been indexed.
@pytest.mark.fallback
@pytest.mark.parametrize("change", ["touched", "replaced", "appended", "off", "newer", "no index"])
def test_when_in_doubt_the_file_is_read(spark: SparkSession, tmp_path: Path, change: str) -> None:
    table = tmp_path / "t"
    for k in range(4):
        spark.range(k * 10, k * 10 + 10, 1, 1).toDF("a").write.mode("append").parquet(str(table))
    indexes.build(spark, table, "parquet")
    entries = {row["a_minValue"]: table / row["path"] for row in indexes.table(spark, table)}
    expected = Counter({"Row(a=25)": 1})
    settings = {}
    if change == "touched":
        import os

        os.utime(entries[0], ns=(1, 10**18))
    elif change == "replaced":
        spark.range(25, 26).toDF("a").coalesce(1).write.parquet(str(tmp_path / "one"))
        put_in_place(data_files(tmp_path / "one")[0], entries[0])
        expected = Counter({"Row(a=25)": 2})
    elif change == "appended":
        with scans.settings(spark, spark__sql__zorder__write__index="false"):
            spark.range(25, 26, 1, 1).toDF("a").write.mode("append").parquet(str(table))
        expected = Counter({"Row(a=25)": 2})
    elif change == "off":
        settings = {"spark__sql__zorder__skipping__enabled": "false"}
    elif change == "newer":
        pointer = max((table / "_zorder" / "_index").glob("_v*.json"))
        text = pointer.read_text().replace('"formatVersion" : 2', '"formatVersion" : 3')
        pointer.write_text(text)
    else:
        indexes.drop(spark, table)
    with scans.settings(spark, **settings):
        left_out = selection(spark, str(table), "a = 25")
        found = fallback.read(spark, str(table)).where("a = 25")
    with scans.plain(spark):
        assert rows_of(found) == expected
    few = {"touched": 2, "replaced": 2, "appended": 3, "off": 0}.get(change, 0)
    assert len(left_out.skipped) == few, str(left_out)
    assert len(kept(table, left_out)) == len(data_files(table)) - few


def test_changed_after_the_query_was_planned(spark: SparkSession, tmp_path: Path) -> None:
    """A file that is replaced after a query was planned must not be skipped, even though Spark
    keeps its first listing of the table."""
    table = tmp_path / "t"
    for k in range(3):
        spark.range(k * 10, k * 10 + 10, 1, 1).toDF("a").write.mode("append").parquet(str(table))
    indexes.build(spark, table, "parquet")
    spark.sql(f"CREATE TABLE stale_listing USING parquet LOCATION '{table}'")
    try:
        assert spark.table("stale_listing").count() == 30
        entries = {row["a_minValue"]: table / row["path"] for row in indexes.table(spark, table)}
        spark.range(25, 35, 1, 1).toDF("a").write.parquet(str(tmp_path / "other"))
        put_in_place(data_files(tmp_path / "other")[0], entries[0])
        left_out = selection(spark, "stale_listing", "a = 25")
        assert entries[0].name in kept(table, left_out)
        assert len(left_out.skipped) == 1
    finally:
        spark.sql("DROP TABLE stale_listing")


def test_time_zones(spark: SparkSession, tmp_path: Path) -> None:
    """A scan uses the bounds of timestamps only if its settings are the same as when the bounds
    were collected."""
    table = tmp_path / "t"
    for k in range(3):
        rows = spark.range(0, 10, 1, 1).selectExpr(f"timestamp_micros({k} * 86400000000 + id) AS a")
        rows.write.mode("append").orc(str(table))
    indexes.build(spark, table, "orc")
    asked = "a < timestamp_micros(1000)"
    assert len(selection(spark, str(table), asked, format="orc").skipped) == 2
    zone = spark.conf.get("spark.sql.session.timeZone")
    other = "Asia/Kathmandu" if zone != "Asia/Kathmandu" else "UTC"
    with scans.settings(spark, spark__sql__session__timeZone=other):
        assert len(selection(spark, str(table), asked, format="orc").skipped) == 0
    with scans.settings(spark, spark__sql__caseSensitive="true"):
        assert len(selection(spark, str(table), asked, format="orc").skipped) == 0


def test_a_schema_given_by_the_reader(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    for k in range(3):
        rows = spark.range(k * 10, k * 10 + 10, 1, 1).selectExpr("int(id) AS a")
        rows.write.mode("append").parquet(str(table))
    indexes.build(spark, table, "parquet")
    for schema, few in (("a INT", 2), ("a BIGINT", 0), (None, 2)):
        found = fallback.read(spark, str(table), schema=schema)
        assert len(found.select_files("a = 5").skipped) == few, schema
        if schema != "a BIGINT" or not spark.version.startswith("3."):  # Spark 3.5 cannot widen INT
            assert found.where("a = 5").count() == 1


@pytest.mark.fallback
@pytest.mark.parametrize("name", ["a b", "ä%20ö", "it's", "x=1%3A2", "ho#me?"])
def test_odd_names(spark: SparkSession, tmp_path: Path, name: str) -> None:
    table = tmp_path / name / "t"
    for k in range(3):
        spark.range(k * 10, k * 10 + 10, 1, 1).toDF("a").write.mode("append").parquet(str(table))
    indexes.build(spark, table, "parquet")
    found = fallback.read(spark, str(table))
    left_out, rows = found.select_files("a = 5"), found.where("a = 5")
    with scans.plain(spark):
        assert rows.count() == 1
        assert opened(rows) == 3 - len(left_out.skipped)
    assert len(left_out.skipped) == (0 if "'" in name else 2)


def test_an_unfinished_run(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    spark.range(10).toDF("a").write.parquet(str(table))
    indexes.build(spark, table, "parquet")
    journal = table / "_zorder" / "_journal"
    journal.mkdir()
    life = (table / "_zorder" / "_incarnation").read_text()
    (journal / "_1.prepare").write_text("{}")
    assert fallback.read(spark, str(table)).where("a = 5").count() == 1
    (journal / "_1.retire").write_text(
        f'{{"record": "retire", "incarnation": "{life}", "retire": [], "add": [], "folders": []}}'
    )
    spark.sql(f"CREATE TABLE unfinished USING parquet LOCATION '{table}'")
    refused = [
        lambda: fallback.read(spark, str(table)).where("a = 5"),
        lambda: fallback.read(spark, str(table)).all(),
        lambda: fallback.sql(spark, f"SELECT count(*) FROM parquet.`{table}`"),
        lambda: fallback.sql(spark, 'SELECT "x", (SELECT max(a) FROM `unfinished`)'),
        lambda: fallback.sql(spark, "WITH c AS (FROM unfinished) SELECT * FROM c UNION VALUES (1)"),
        lambda: fallback.explain(spark, "SELECT * FROM unfinished"),
    ]
    try:
        for query in refused:
            with pytest.raises(ZOrderError, match="ZORDER_FALLBACK_UNFINISHED.*run 1"):
                query()
        shadowed = "WITH unfinished AS (SELECT 7 AS a) SELECT a FROM unfinished"
        assert [row.a for row in fallback.sql(spark, shadowed).collect()] == [7]
    finally:
        fallback.sql(spark, "DROP TABLE unfinished")
    (journal / "_1.done").write_text("")
    assert fallback.read(spark, str(table)).where("a = 5").count() == 1
