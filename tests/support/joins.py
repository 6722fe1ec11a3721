"""Helpers that count the files skipped by join keys, and compare answers with plain Spark's."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.support.scans import explain, plain


def scans_of(df: DataFrame, table: str = "fact") -> list[dict[str, Any]]:
    """What skipping did in the scans of one table, after the query has run."""
    return [scan for scan in explain(df) if scan["table"] == table]


def counts(df: DataFrame, table: str = "fact") -> tuple[int, ...]:
    """The number of files that each scan of a table opens."""
    return tuple(sorted(len(scan["opened"]) for scan in scans_of(df, table)))


def rows(df: DataFrame) -> list[str]:
    """The rows in a fixed order, in which NaN equals itself."""
    return sorted(map(str, df.collect()))


def checked(spark: SparkSession, sql: str) -> DataFrame:
    """Runs the query, and checks that skipping does not change its answer."""
    with plain(spark):
        expected = rows(spark.sql(sql))
    df = spark.sql(sql)
    assert rows(df) == expected
    return df
