"""GROUP BY and SELECT DISTINCT return the right answers. The index answers files whose rows all
belong to the same group."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.indexes import build
from tests.support.metadata_only import FORMATS, answered, read, same, view, write
from tests.support.scans import settings

#: Columns whose values can be those of a group, with SQL for their value number {n}.
GROUPING = {
    "b": "{n} % 2 = 0",
    "i": "CAST({n} AS INT)",
    "l": "CAST({n} AS BIGINT) * 10000000000",
    "n": "CAST({n} / 4 AS DECIMAL(9,2))",
    "w": "CAST({n} / 8 AS DECIMAL(30,10))",
    "s": "concat('s', {n})",
    "x": "CAST(concat('x', {n}) AS BINARY)",
    "dt": "date_add(DATE'1969-12-30', CAST({n} AS INT))",
    "ts": "timestamp_seconds({n} * 86400)",
    "tn": "timestampadd(HOUR, CAST({n} AS INT), TIMESTAMP_NTZ'2020-01-01 00:00:00')",
    "ym": "make_ym_interval(0, CAST({n} AS INT))",
}

#: Columns by which only files can be grouped that are read.
READ = {
    "d": "if({n} % 3 = 0, -0D, if({n} % 3 = 1, 0D, CAST('NaN' AS DOUBLE)))",
    "f": "CAST({n} AS FLOAT)",
    "long": "concat(repeat('y', 300), {n})",
}

#: The values of the grouping columns in each file; None is NULL. The last two files have several.
VALUES: list[list[int | None]] = [[1], [1], [2], [None], [3], [1], [1, 2], [2, None]]
ROWS = 6


@pytest.fixture(scope="module")
def relation(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = Path(tmp_path_factory.mktemp("groups"))
    for file, values in enumerate(VALUES):
        numbers = [values[row % len(values)] for row in range(ROWS)]
        listed = ", ".join(
            f"({file * ROWS + row}, {'NULL' if n is None else f'{n}L'})"
            for row, n in enumerate(numbers)
        )
        columns = ", ".join(f"{v.format(n='n')} AS {c}" for c, v in {**GROUPING, **READ}.items())
        write(spark, path, "parquet", f"SELECT id, {columns} FROM VALUES {listed} AS v(id, n)")
    build(spark, path, "parquet")
    return view(spark, path, "parquet", "grouped")


@pytest.mark.variants()
@pytest.mark.parametrize("column", GROUPING)
def test_columns_with_one_value_in_a_file(spark: SparkSession, relation: str, column: str) -> None:
    shown = f"CAST({column} AS STRING)"  # Python does not support intervals of months
    for query in (
        f"SELECT {shown}, count(*), min(id), max(i) FROM {relation} GROUP BY {column}",
        f"SELECT {shown} FROM (SELECT DISTINCT {column} FROM {relation})",
        f"SELECT count(*) AS c, {shown} FROM {relation} WHERE id > 5 GROUP BY {column}",
    ):
        assert read(same(spark, query)) == 2, query


@pytest.mark.variants()
@pytest.mark.parametrize("column", READ)
def test_columns_by_which_files_are_not_grouped(
    spark: SparkSession, relation: str, column: str
) -> None:
    df = same(spark, f"SELECT {column}, count(*) FROM {relation} GROUP BY {column}")
    assert answered(df) == 0


QUERIES = [
    ("SELECT i, s, count(*) FROM {t} GROUP BY i, s", 2),
    ("SELECT s, max(dt), min(dt), count(n) FROM {t} GROUP BY s HAVING count(*) > 6", 2),
    ("SELECT i + 1, concat(s, '!'), count(*) + 1 FROM {t} GROUP BY i, s", 2),
    ("SELECT a, count(*) FROM (SELECT i AS a, id FROM {t}) WHERE a > 1 GROUP BY a", 2),
    ("SELECT i, count(*) FROM {t} WHERE i > 1 GROUP BY i", 2),
    ("SELECT i, count(*) FROM {t} WHERE id < 9 GROUP BY i", 1),
    ("SELECT i, count(*) FROM {t} WHERE id < 0 GROUP BY i", 0),
    ("SELECT i, count(*) FROM {t} WHERE i IS NULL GROUP BY i", 1),
    ("SELECT count(*) FROM {t} GROUP BY i", 2),
    ("SELECT i, count(*), max(s) FROM {t} GROUP BY i ORDER BY i LIMIT 2", 2),
    ("SELECT i FROM {t} GROUP BY i UNION ALL SELECT count(*) FROM {t} GROUP BY s", 4),
    ("SELECT a.i, c, b.id FROM (SELECT i, count(*) AS c FROM {t} GROUP BY i) a JOIN {t} b "
     "ON a.c = b.id", None),
    ("SELECT id FROM {t} WHERE i IN (SELECT l / 10000000000 FROM {t} GROUP BY l)", None),
    ("SELECT count(*) FROM (SELECT DISTINCT i FROM {t})", 2),
    ("SELECT i, count(DISTINCT s) FROM {t} GROUP BY i", 2),
    ("SELECT count(DISTINCT i), sum(DISTINCT i) FROM {t}", 2),
]  # fmt: skip

#: Queries that do not use the index.
UNANSWERED = [
    "SELECT id, count(*) FROM {t} GROUP BY id",  # every file has several values
    "SELECT i, id, count(*) FROM {t} GROUP BY i, id",
    "SELECT i % 2, count(*) FROM {t} GROUP BY i % 2",
    "SELECT i, sum(id) FROM {t} GROUP BY i",
    "SELECT i, count(DISTINCT id) FROM {t} GROUP BY i",
    "SELECT i, count(DISTINCT s), count(*) FROM {t} GROUP BY i",
    "SELECT i, count(*) FROM {t} GROUP BY ROLLUP (i)",
    "SELECT i, count(*) FILTER (WHERE id > 3) FROM {t} GROUP BY i",
    "SELECT i, count(*) OVER (PARTITION BY i) FROM {t}",
]


@pytest.mark.parametrize("aqe", ["true", "false"])
def test_queries(spark: SparkSession, relation: str, aqe: str) -> None:
    with settings(spark, spark__sql__adaptive__enabled=aqe):
        for query, most in QUERIES:
            df = same(spark, query.format(t=relation))
            assert answered(df) > 0 or most == 0 or "id < 9" in query, query
            assert most is None or read(df) == most, query
    for query in UNANSWERED:
        assert answered(same(spark, query.format(t=relation))) == 0, query


def test_explain(spark: SparkSession, relation: str) -> None:
    text = spark.sql(f"EXPLAIN SELECT i, count(*) FROM {relation} GROUP BY i").collect()[0][0]
    assert "ZOrderAnswers [6 files answered from the index, 2 opened]" in text


@pytest.fixture
def parted(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """An indexed table with the partition columns `p` and `q`, both with NULL, and an empty file."""
    spark.sql("DROP TABLE IF EXISTS grouped_parts")
    path = tmp_path / "t"
    spark.range(0, 60, 1, 2).selectExpr(
        "id", "nullif(id % 3, 2) AS p", "nullif(concat('a b=', id % 2), 'a b=1') AS q"
    ).write.partitionBy("p", "q").parquet(str(path))
    spark.sql(
        "CREATE TABLE grouped_parts (id BIGINT, p INT, q STRING) USING parquet "
        f"PARTITIONED BY (p, q) LOCATION '{path}'"
    )
    spark.sql("MSCK REPAIR TABLE grouped_parts")
    empty = "SELECT id FROM range(5) WHERE id < 0"
    spark.sql(f"INSERT INTO grouped_parts PARTITION (p = 9, q = 'none') {empty}")
    write(spark, path / "p=9" / "q=none", "parquet", empty)
    spark.sql("CREATE SKIPPING INDEX ON grouped_parts")
    yield "grouped_parts"
    spark.sql("DROP TABLE grouped_parts")


def test_partition_columns(spark: SparkSession, parted: str) -> None:
    for query in (
        "SELECT p, count(*), min(id), max(q) FROM {t} GROUP BY p",
        "SELECT q, p, count(*) FROM {t} WHERE p = 1 OR p IS NULL GROUP BY p, q",
        "SELECT DISTINCT q FROM {t}", "SELECT DISTINCT p, q FROM {t} WHERE id >= 0",
        "SELECT p, count(id) FROM {t} WHERE p > 0 GROUP BY p",
    ):  # fmt: skip
        df = same(spark, query.format(t=parted))
        assert (read(df), answered(df) > 0) == (0, True), query
    df = same(spark, f"SELECT p, count(*) FROM {parted} WHERE id < 30 AND id % 2 = 0 GROUP BY p")
    assert answered(df) == 0
    with settings(spark, spark__sql__zorder__write__index="false"):
        spark.sql(f"INSERT INTO {parted} VALUES (1000, 1, 'new')")
    assert read(same(spark, f"SELECT p, q, count(*) FROM {parted} GROUP BY p, q")) == 1
    spark.sql(f"ALTER TABLE {parted} ADD COLUMN added INT DEFAULT 5")
    for column in ("added", "p, added"):
        same(spark, f"SELECT {column}, count(*), min(added) FROM {parted} GROUP BY {column}")


@FORMATS
def test_drawn_tables(spark: SparkSession, tmp_path: Path, fmt: str) -> None:
    """Random tables in which many files have one value, and random queries."""
    draw, used = random.Random(7), 0
    for number in range(3):
        path = tmp_path / f"t{number}"
        for file in range(6):
            pools = {c: draw.sample(range(4), draw.choice([1, 1, 1, 2])) for c in GROUPING}
            chosen = ", ".join(
                "{} AS {}".format(
                    value.format(n=f"element_at(array({', '.join(map(str, pools[c]))}), "
                                   f"CAST(id % {len(pools[c])} + 1 AS INT))")
                    if draw.random() < 0.8 else f"if(id % 3 = 0, NULL, {value.format(n='id')})", c)
                for c, value in GROUPING.items()
            )  # fmt: skip
            write(spark, path, fmt, f"SELECT id, {chosen} FROM range({file * 5}, {file * 5 + 5})")
        build(spark, path, fmt)
        relation = view(spark, path, fmt, "grouped_drawn")
        for _ in range(12):
            keys = ", ".join(
                draw.sample(sorted(GROUPING.keys() - {"ym"}), draw.choice([1, 1, 2, 3]))
            )
            wanted = draw.sample(["count(*)", "min(id)", "max(s)", "count(n)", "min(w)"], 2)
            where = draw.choice(["", "", "WHERE id < 20", "WHERE i = 1", "WHERE s IS NOT NULL"])
            used += answered(
                same(spark, f"SELECT {keys}, {', '.join(wanted)} FROM {relation} {where} "
                            f"GROUP BY {keys}"))  # fmt: skip
    assert used > 50
