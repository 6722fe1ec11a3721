"""If a column has only a few values in each file, its sketches list these values. Then any condition
on the column opens only files in which one of the values satisfies it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from tests.support import metadata_only, scans, sketches
from tests.support.lookups import holding, opened, view
from tests.support.tables import data_files

FILES, ROWS = 16, 60


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A table in which each file has three values of each column, spread over the whole range, and
    every fourth file has nulls."""
    spark.conf.set(sketches.BUDGET, "1")
    folder = tmp_path / "t"
    rows(spark).write.parquet(str(folder))
    spark.sql(f"CREATE SKIPPING INDEX ON '{folder}' ({', '.join(COLUMNS)}, id)")
    yield folder
    spark.catalog.dropTempView("t")


COLUMNS = ("n", "big", "name", "bytes", "price", "wide", "day", "at", "x")


def rows(spark: SparkSession, start: int = 0, files: int = FILES) -> DataFrame:
    """Rows for files in which `v` has the values f, f + 16 and f + 32 of 48, where f is the number
    of the file."""
    return (
        spark.range(start * ROWS, (start + files) * ROWS, 1, files)
        .selectExpr("id", f"CAST(id DIV {ROWS} % 16 + 16 * (id % 3) AS INT) AS v")
        .selectExpr(
            "id", "id % 7 = 0 AND v % 4 = 0 AS missing", "v AS n", "v * 1000000007L - 5 AS big",
            "concat('name-', lpad(v, 2, '0'), CASE WHEN v % 5 = 0 THEN 'é' ELSE '' END) AS name",
            "unhex(lpad(hex(v * 5), 4, '0')) AS bytes", "CAST(v / 4 AS DECIMAL(9,2)) AS price",
            "CAST(v AS DECIMAL(38,3)) * CAST(1e20 AS DECIMAL(30,0)) AS wide",
            "date_add(date'2024-01-01', v) AS day",
            "timestamp_seconds(1700000000 + v * 86400) AS at", "v / 8D AS x",
        )
        .selectExpr(
            "id", *(f"IF(missing, NULL, {c}) AS {c}" for c in COLUMNS)
        )
    )  # fmt: skip


#: Conditions for which at least one file has a matching row, but not every file.
CONDITIONS = [
    "n = 20", "n IN (3, 20)", "n <=> 20", "n > 20 AND n < 23", "n BETWEEN 21 AND 22",
    "n % 16 = 5", "n % 2 = 0 AND n > 40", "NOT (n % 16 != 5)", "abs(n - 24) <= 1",
    "n > 46 OR n % 16 = 3", "n % 16 = 3 OR big = 20 * 1000000007L - 5",
    "n BETWEEN 21 AND 22 OR name = 'name-03'", "coalesce(n, -1) = -1", "n IS NULL",
    "n % 16 = 5 OR n IS NULL", "CASE WHEN n % 16 = 5 THEN true ELSE n = 3 END",
    "big % 10 = 2", "big / 2 > 23000000000", "big = 17000000114",
    "name LIKE '%21'", "name LIKE '%-2%3'", "contains(name, '23')", "endswith(name, '7')",
    "name LIKE '%é'", "upper(name) = 'NAME-21'", "length(name) > 7", "name LIKE 'name-4%'",
    "name > 'name-20' AND name < 'name-22'", "substring(name, 6, 2) = '09'",
    "name NOT LIKE '%1%' AND name NOT LIKE '%2%' AND name NOT LIKE '%3%' AND name > 'name-06'",
    "bytes = X'0014'", "length(bytes) = 2 AND bytes > X'00E0'", "hex(bytes) LIKE '%B'",
    "price = 5.25", "price > 5 AND price < 5.5", "CAST(price AS STRING) LIKE '%.75'",
    "floor(price) = 3", "wide = 2100000000000000000000", "CAST(wide AS STRING) LIKE '21%.000'",
    "day = date'2024-01-21'", "dayofweek(day) = 1", "month(day) = 2 AND day < date'2024-02-03'",
    "day > date'2024-01-20' AND day < date'2024-01-23'", "day + INTERVAL '1' DAY = date'2024-01-21'",
    "at BETWEEN timestamp_seconds(1701800000) AND timestamp_seconds(1701900000)",
]  # fmt: skip


def test_conditions_open_the_files_with_a_matching_value(spark: SparkSession, table: Path) -> None:
    wrong = {}
    for condition in CONDITIONS:
        files = holding(spark, table, condition)
        assert 0 < files < FILES, condition
        found = opened(spark, table, condition)
        if found != files:
            wrong[condition] = found, files
    assert not wrong


@pytest.mark.parametrize(
    "condition",
    ["n = 48", "n % 50 = 49", "name LIKE '%x%'", "name = 'name'", "price = 0.125",
     "n > 20 AND n % 50 = 49", "contains(name, 'zz') OR day = date'2025-01-01'"],
)  # fmt: skip
def test_absent_values_open_no_file(spark: SparkSession, table: Path, condition: str) -> None:
    assert opened(spark, table, condition) == 0


@pytest.mark.parametrize(
    "condition",
    [
        "name RLIKE '21'",  # Java's matcher could take too long while the query is planned
        "name LIKE '%2%1%x%'",
        "x * 8 = 21",  # a DOUBLE column has no lists
        "n + id % 2 = 48",  # this depends on another column
        "date_format(day, 'dd') = '05'",  # this depends on a setting
    ],
)
def test_other_conditions_open_all_files(spark: SparkSession, table: Path, condition: str) -> None:
    assert opened(spark, table, condition) == FILES


def test_a_condition_that_fails_for_a_listed_value_fails(spark: SparkSession, table: Path) -> None:
    view(spark, table)
    failing = "SELECT id FROM t WHERE 100 DIV (n - 20) = 7"
    with (
        scans.settings(spark, spark__sql__ansi__enabled="true"),
        pytest.raises(Exception, match=r"DIVIDE_BY_ZERO"),
    ):
        spark.sql(failing).collect()
    assert opened(spark, table, "100 DIV nullif(n - 20, 0) = 7") < FILES


def test_counts_open_only_the_files_with_both_outcomes(spark: SparkSession, table: Path) -> None:
    view(spark, table)
    mixed = {
        "n % 16 < 8 OR n IS NULL": 2,
        "n % 16 < 8 AND n IS NOT NULL AND n % 4 > 0": 0,
        "name LIKE '%1' OR name LIKE '%é'": FILES,
        "IF(n % 16 = 3, true, n < 0)": 0,
    }
    for condition, most in mixed.items():
        df = spark.sql(f"SELECT count(*) FROM t WHERE {condition}")
        found = df.first()
        with scans.plain(spark):
            assert spark.sql(f"SELECT count(*) FROM t WHERE {condition}").first() == found
        (scan,) = scans.explain(df)
        assert len(scan["opened"]) <= most, condition


#: Queries for distinct values, with the number of files that they read.
DISTINCT = [
    *((f"SELECT DISTINCT {column} FROM t", 0) for column in COLUMNS if column != "x"),
    ("SELECT DISTINCT x FROM t", FILES),
    ("SELECT DISTINCT id FROM t", FILES),  # there is a value for each row
    ("SELECT n FROM t GROUP BY n", 0),
    ("SELECT DISTINCT n + 1 FROM t WHERE n % 2 = 0", 8),
    ("SELECT n + 1 FROM t WHERE n % 2 = 0 GROUP BY n", 4),
    ("SELECT DISTINCT name AS other FROM t ORDER BY 1 DESC LIMIT 3", 0),
    ("SELECT count(DISTINCT n) FROM t", 0),
    ("SELECT count(DISTINCT n), sum(DISTINCT n) FROM t", 0),
    ("SELECT count(DISTINCT n), max(DISTINCT n) FROM t", FILES),  # Spark removes the second DISTINCT
    ("SELECT count(DISTINCT name) FROM t HAVING count(DISTINCT name) > 5", 0),
    ("SELECT count(*) FROM (SELECT DISTINCT price FROM t)", 0),
    ("SELECT n FROM t INTERSECT SELECT n + 1 FROM t", None),
    ("SELECT DISTINCT n FROM t WHERE n % 16 < 8", 2),  # two files have both such values and null
    ("SELECT DISTINCT n FROM t WHERE n IS NOT NULL", 4),
    ("SELECT DISTINCT n FROM t WHERE id >= 600", 0),
    ("SELECT DISTINCT n FROM t WHERE id >= 630", 1),
    ("SELECT count(DISTINCT n) FROM t WHERE id < 90", 1),
    ("SELECT DISTINCT n, n FROM t", None),
    ("SELECT n, count(DISTINCT n) FROM t GROUP BY n", None),
    ("SELECT DISTINCT n FROM t UNION ALL SELECT count(DISTINCT n) FROM t", 0),
    ("SELECT count(DISTINCT bytes), length(max(bytes)) > 1 FROM (SELECT DISTINCT bytes FROM t)", 0),
    ("SELECT DISTINCT n, name FROM t", FILES),  # the lists do not say which values are in one row
    ("SELECT count(DISTINCT n, name) FROM t", FILES),
    ("SELECT count(DISTINCT n), count(*) FROM t", FILES),
    ("SELECT count(DISTINCT n), count(DISTINCT name) FROM t", FILES),
    ("SELECT count(DISTINCT n) FILTER (WHERE id > 100) FROM t", FILES),
    ("SELECT n, count(*) FROM t GROUP BY n", FILES),
    ("SELECT n, min(id) FROM t GROUP BY n", FILES),
    ("SELECT count(DISTINCT n % 2) FROM t", FILES),
    ("SELECT n FROM t GROUP BY GROUPING SETS ((n), ())", FILES),
]  # fmt: skip


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_distinct_values(spark: SparkSession, table: Path, adaptive: str) -> None:
    view(spark, table)
    counted = {}
    with scans.settings(spark, spark__sql__adaptive__enabled=adaptive):
        for query, _ in DISTINCT:
            counted[query] = files_read(metadata_only.same(spark, query))
    assert {q: counted[q] for q, most in DISTINCT if most not in (None, counted[q])} == {}


def test_distinct_values_of_new_files(spark: SparkSession, table: Path) -> None:
    rows(spark, FILES, 2).withColumn("n", expr("n + 100")).write.mode("append").parquet(str(table))
    many = rows(spark, FILES + 2, 2).withColumn("n", expr("CAST(1000 + id AS INT)"))
    many.write.mode("append").parquet(str(table))
    view(spark, table)
    for column in ("n", "bytes", "wide", "at"):
        assert files_read(metadata_only.same(spark, f"SELECT DISTINCT {column} FROM t")) == 0
    with scans.settings(spark, spark__sql__zorder__write__index="false"):
        rows(spark, FILES + 4, 1).write.mode("append").parquet(str(table))
    view(spark, table)
    assert files_read(metadata_only.same(spark, "SELECT DISTINCT n FROM t")) == 1


def test_distinct_values_with_a_damaged_segment(spark: SparkSession, table: Path) -> None:
    segment = table / "_zorder" / "_index" / sketches.segments(table)[0]
    content = segment.read_bytes()
    segment.write_bytes(content[:100] + bytes(len(content) - 100))
    view(spark, table)
    assert files_read(metadata_only.same(spark, "SELECT DISTINCT name FROM t")) == FILES


@pytest.mark.parametrize("fmt", ["parquet", "orc"])
def test_distinct_values_of_fields(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    spark.conf.set(sketches.BUDGET, "1")
    folder = tmp_path / "t"
    spark.sql("DROP TABLE IF EXISTS nested")
    table = f"nested USING {fmt} LOCATION '{folder}'"
    spark.sql(
        f"CREATE TABLE {table} AS SELECT struct(n AS `a.b`, name) AS s FROM {{rows}}",
        rows=rows(spark),
    )
    spark.sql("CREATE SKIPPING INDEX ON nested (s.`a.b`, s.name)")
    for query in (
        "SELECT DISTINCT s.`a.b` FROM nested",
        "SELECT count(DISTINCT s.name) FROM nested",
        "SELECT sum(DISTINCT s.`a.b`) FROM nested",
    ):
        assert files_read(metadata_only.same(spark, query)) == 0, query
    spark.sql("DROP TABLE nested")


def test_groups_of_which_one_column_has_several_values(spark: SparkSession, tmp_path: Path) -> None:
    """The first column has one value in each file, the second one has a list."""
    spark.conf.set(sketches.BUDGET, "1")
    folder = tmp_path / "t"
    rows(spark).selectExpr(f"id DIV {ROWS} AS f", "n", "name", "id").write.parquet(str(folder))
    spark.sql(f"CREATE SKIPPING INDEX ON '{folder}' (f, n, name, id)")
    view(spark, folder)
    for query, most in [
        ("SELECT DISTINCT f, n FROM t", 0),
        ("SELECT DISTINCT name, f FROM t WHERE f > 3", 0),
        ("SELECT f, count(DISTINCT n) FROM t GROUP BY f", 0),
        ("SELECT f, count(DISTINCT n), sum(DISTINCT n) FROM t WHERE id > 70 GROUP BY f", 1),
        ("SELECT DISTINCT f, n, name FROM t", FILES),
    ]:
        assert files_read(metadata_only.same(spark, query)) == most, query


def files_read(df: DataFrame) -> int:
    """The number of files that a query reads from a table whose index may answer it."""
    return sum(len(scan["opened"]) for scan in scans.explain(df))


def test_describe_counts_lists(spark: SparkSession, table: Path) -> None:
    described = {
        row["column"]: row for row in spark.sql(f"DESCRIBE SKIPPING INDEX ON '{table}'").collect()
    }
    for column in COLUMNS:
        row = described[column]
        assert row["sketches"] == FILES, column
        assert row["value_lists"] == (0 if column == "x" else FILES), column
        assert 0 < row["sketch_bytes"] < 4000, column


def test_insert_adds_lists(spark: SparkSession, table: Path) -> None:
    rows(spark, FILES).write.mode("append").parquet(str(table))
    assert len(data_files(table)) == 2 * FILES
    assert opened(spark, table, "n % 16 = 5") == 2
    assert opened(spark, table, "name LIKE '%21'") == 2


def test_optimize_keeps_lists(spark: SparkSession, table: Path) -> None:
    with scans.settings(spark, spark__sql__zorder__optimize__targetFileSize="6k"):
        spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    files = len(data_files(table))
    assert files > 4
    assert opened(spark, table, "n % 16 = 5") == holding(spark, table, "n % 16 = 5") < files


def test_files_with_many_values_have_hashes(spark: SparkSession, table: Path) -> None:
    """Lists and hashes of the same column are in different segments, until these are merged."""
    many = rows(spark, FILES, 2).withColumn("n", expr("CAST(1000 + id AS INT)"))
    many.write.mode("append").parquet(str(table))
    for _ in range(18):
        assert opened(spark, table, "n = 20") == 1
        assert opened(spark, table, "n = 1970") == 1
        assert opened(spark, table, "n % 16 = 5 AND n < 48") <= 3
        rows(spark, FILES, 1).write.mode("append").parquet(str(table))
