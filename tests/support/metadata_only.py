"""Helpers for queries that the index can answer (COUNT, MIN and MAX). These helpers check a query's
answer and count the files that the query still reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.sampled import long
from tests.support.scans import explain, opened, plain, truth

FORMATS = pytest.mark.parametrize("fmt", long(["parquet", "orc"], "parquet"))


def same(spark: SparkSession, query: str) -> DataFrame:
    """Asserts that the query has the same answer without skipping, and returns a new DataFrame for
    the query."""
    with plain(spark):
        expected = repr(sorted(spark.sql(query).collect(), key=repr))
    assert repr(sorted(spark.sql(query).collect(), key=repr)) == expected, query
    return spark.sql(query)


def read(df: DataFrame) -> int:
    """The number of files that the query's scans read."""
    return sum(scan["selected"] + scan["unindexed"] for scan in explain(df))


def answered(df: DataFrame) -> int:
    """The number of files that are not read because the index is used instead."""
    return sum(scan["answered"] for scan in explain(df))


def write(spark: SparkSession, path: Path, fmt: str, *selects: str) -> None:
    """Writes one file for each SELECT list."""
    for select in selects:
        spark.sql(select).coalesce(1).write.format(fmt).mode("append").save(str(path))


def view(spark: SparkSession, path: Path, fmt: str, name: str) -> str:
    """Creates a view of the folder's current files, and returns its name."""
    spark.read.format(fmt).load(str(path)).createOrReplaceTempView(name)
    return name


def check_strict(spark: SparkSession, relation: str, predicates: list[str]) -> int:
    """Checks the strict filter (the filter for files in which all rows match) against plain Spark.

    If count(*) does not open a file, the predicate must be TRUE either for all rows in the file or
    for none of them. The index must be used for exactly those unopened files in which the predicate
    is TRUE for all rows. Returns the number of these files, summed over all predicates.
    """
    wrong, count = [], 0
    for predicate, files in zip(predicates, truth(spark, relation, predicates), strict=True):
        df = spark.sql(f"SELECT count(*) FROM {relation} WHERE {predicate}")
        scans = explain(df)
        if len(scans) != 1:
            continue  # the optimizer removed the scan
        closed = (files["true"] | files["false"] | files["null"]) - opened(df)
        mixed = closed & files["true"] & (files["false"] | files["null"])
        if mixed or len(closed & files["true"]) != scans[0]["answered"]:
            wrong.append(f"{predicate}: {sorted(mixed)}, {scans[0]['answered']} answered")
        count += scans[0]["answered"]
    assert not wrong, "\n".join(wrong)
    return count
