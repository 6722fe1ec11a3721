"""Rows that have none of the keys of a join in a later stage are dropped before they are shuffled.

Each of the 20 files of `sales` contains two values of each column in TYPES, and each value in ten
rows. In one of these rows, the column is null. `days` has the values of one half of each file.
Spark broadcasts `days` but neither `sales` nor `returns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.joins import (
    broadcasting_only_days,
    checked,
    counts,
    fact_tables,
    scans_of,
    stage_rows,
)
from tests.support.scans import plain, settings

#: Types of a column, and how it is computed from a number.
TYPES = {
    "smallint": "CAST({} AS SMALLINT)",
    "int": "CAST({} AS INT)",
    "bigint": "CAST({} AS BIGINT)",
    "decimal": "CAST({} AS DECIMAL(9, 2))",
    "wide_decimal": "CAST({} AS DECIMAL(30, 2))",
    "date": "date_add(DATE'2020-01-01', CAST({} AS INT))",
    "timestamp": "timestamp_seconds({})",
    "string": "lpad(CAST({} AS STRING), 9, '0')",
    "double": "CAST({} AS DOUBLE)",
}
SOLD = """
    SELECT /*+ BROADCAST(days) */ s.q, r.q AS of_return
    FROM sales s JOIN returns r ON s.ticket = r.ticket"""
FILES = 5
READ = 20 * FILES


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    def columns(number: str) -> list[str]:
        return [f"{value.format(number)} AS c_{name}" for name, value in TYPES.items()]

    folder = Path(tmp_path_factory.mktemp("rows"))
    of_facts = columns("IF(id % 10 = 3, NULL, id DIV 10)")
    with fact_tables(spark, folder, columns("2 * id"), *of_facts):
        yield


@pytest.fixture
def session(spark: SparkSession, tables: None) -> Iterator[SparkSession]:
    with (
        broadcasting_only_days(spark, "true"),
        # generated code that does not compile is an error
        settings(
            spark,
            spark__sql__codegen__factoryMode="CODEGEN_ONLY",
            spark__sql__codegen__fallback="false",
        ),
    ):
        yield spark


def shuffled(spark: SparkSession, sql: str, adds: str) -> int:
    """The number of rows of `sales` that are shuffled if the query is extended by `adds`."""
    sql = f"{sql} {adds}"
    checked(spark, sql)
    before = stage_rows(spark)
    df = spark.sql(sql)
    df.collect()
    assert counts(df, "sales") == (FILES,)
    (of_sales,) = [
        written
        for stage, (read, written) in stage_rows(spark).items()
        if stage not in before and read == READ
    ]
    return of_sales


def has_filter(df: DataFrame) -> bool:
    df.collect()
    return "is a join key" in df._jdf.queryExecution().executedPlan().toString()


def test_explain(session: SparkSession) -> None:
    df = session.sql(f"{SOLD} JOIN days ON s.c_int = days.c_bigint AND month = 2")
    df.collect()
    (scan,) = scans_of(df, "sales")
    assert "drops rows by join key CAST(c_int AS BIGINT)" in scan["reasons"]


@pytest.mark.parametrize("name", TYPES)
def test_only_rows_with_a_key_are_shuffled(session: SparkSession, name: str) -> None:
    days = f"JOIN days ON s.c_{name} = days.c_{name} AND month = 2"
    # equal floating-point numbers may differ in their bits, and wide decimals take long to compare
    expected = READ - 10 if name in ("double", "wide_decimal") else READ // 2 - FILES
    assert shuffled(session, SOLD, days) == expected


@pytest.mark.parametrize(
    ("name", "adds"),
    [
        ("a widened key", "JOIN days ON s.c_int = days.c_bigint AND month = 2"),
        ("an integer as a decimal", "JOIN days ON s.c_int = days.c_decimal AND month = 2"),
        (
            "two keys",
            "JOIN days ON s.c_int = days.c_int AND s.c_date = days.c_date AND month = 2",
        ),
        (
            "keys restricted by another join",
            "JOIN days ON s.c_int = days.c_int JOIN (VALUES (2)) AS v (m) ON month = m",
        ),
        ("IN", "WHERE s.c_date IN (SELECT c_date FROM days WHERE month = 2)"),
    ],
)
def test_other_joins(session: SparkSession, name: str, adds: str) -> None:
    assert shuffled(session, SOLD, adds) == READ // 2 - FILES


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("spark.sql.codegen.wholeStage", "false", READ // 2 - FILES),
        ("spark.sql.codegen.factoryMode", "NO_CODEGEN", READ // 2 - FILES),
        ("spark.sql.parquet.enableVectorizedReader", "false", READ // 2 - FILES),
        ("spark.sql.zorder.join.maxKeys", "4", READ - 10),  # the keys become ranges
    ],
)
def test_settings(session: SparkSession, setting: str, value: str, expected: int) -> None:
    days = "JOIN days ON s.c_string = days.c_string AND month = 2"
    with settings(session, **{setting.replace(".", "__"): value}):
        assert shuffled(session, SOLD, days) == expected


def test_a_side_that_is_itself_shuffled(session: SparkSession) -> None:
    days = "JOIN days ON s.c_int = days.c_int AND month = 2"
    with settings(session, spark__sql__autoBroadcastJoinThreshold="-1"):
        assert shuffled(session, "SELECT s.q FROM sales s", days) == READ // 2 - FILES


def test_a_join_in_the_same_stage_drops_the_rows_itself(session: SparkSession) -> None:
    days = "JOIN days ON s.c_int = days.c_int AND month = 2"
    assert not has_filter(session.sql(f"SELECT /*+ BROADCAST(days) */ s.q FROM sales s {days}"))
    assert has_filter(session.sql(f"{SOLD} {days}"))


def test_a_join_in_the_same_stage_whose_keys_a_later_join_restricts(session: SparkSession) -> None:
    sold = """
        SELECT s.month, r.q FROM (SELECT month, s.ticket FROM sales s JOIN days ON s.c_int = days.c_int) s
        JOIN returns r ON s.ticket = r.ticket"""
    assert not has_filter(checked(session, sold))
    assert has_filter(checked(session, f"{sold} JOIN (VALUES (2)) AS v (m) ON s.month = m"))


def test_without_skipping_all_rows_are_read(session: SparkSession) -> None:
    with plain(session):
        assert not has_filter(
            session.sql(f"{SOLD} JOIN days ON s.c_int = days.c_int AND month = 2")
        )


def test_other_keys_need_no_new_code(session: SparkSession) -> None:
    metrics = session._jvm.org.apache.spark.metrics.source.CodegenMetrics
    compiled = [metrics.METRIC_COMPILATION_TIME().getCount()]
    for keys in ("(20), (22)", "(24), (28)"):
        df = session.sql(f"{SOLD} JOIN (VALUES {keys}) AS v (c) ON s.c_int = v.c AND s.q < 49")
        assert has_filter(df)
        compiled.append(metrics.METRIC_COMPILATION_TIME().getCount())
    assert compiled[0] < compiled[1] == compiled[2]


def test_casts_that_could_fail(session: SparkSession) -> None:
    """The latest dates have no timestamp. A query may drop them before it compares timestamps."""
    days = """
        JOIN (SELECT month, CAST(c_date AS TIMESTAMP) AS start FROM days) days
        ON s.c_date = start AND month = 2"""
    assert shuffled(session, SOLD, days) == READ - 10
