"""Counts the files that a lookup opens in a table on a path, and the files that contain matching
rows."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.support import scans


def view(spark: SparkSession, table: Path) -> None:
    """Creates the temporary view `t` of the table."""
    spark.read.parquet(str(table)).createOrReplaceTempView("t")


def opened(spark: SparkSession, table: Path, condition: str) -> int:
    """Returns how many files a query opens, and asserts that its answer is the same as in plain
    Spark."""
    view(spark, table)
    query = f"SELECT id FROM t WHERE {condition}"
    found = sorted(row["id"] for row in spark.sql(query).collect())
    with scans.plain(spark):
        assert found == sorted(row["id"] for row in spark.sql(query).collect())
    return len(scans.opened(spark.sql(query)))


def holding(spark: SparkSession, table: Path, condition: str) -> int:
    """The number of files with a matching row."""
    view(spark, table)
    (files,) = scans.truth(spark, "t", [condition])
    return len(files["true"])
