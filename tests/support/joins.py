"""What the keys of joins did to the files of a table, with the answer held against plain Spark's."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.support.scans import explain, plain


def scans_of(df: DataFrame, table: str = "fact") -> list[dict[str, Any]]:
    """What skipping did to the scans of one table, after the query has run."""
    return [scan for scan in explain(df) if scan["table"] == table]


def counts(df: DataFrame, table: str = "fact") -> tuple[int, ...]:
    """How many files each scan of a table opens."""
    return tuple(sorted(len(scan["opened"]) for scan in scans_of(df, table)))


def rows(df: DataFrame) -> list[str]:
    """The rows in one order, NaN equal to itself."""
    return sorted(map(str, df.collect()))


def checked(spark: SparkSession, sql: str) -> DataFrame:
    """The query after it has run, its answer equal to the one without skipping."""
    with plain(spark):
        expected = rows(spark.sql(sql))
    df = spark.sql(sql)
    assert rows(df) == expected
    return df
