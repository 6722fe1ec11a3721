"""COUNT, MIN and MAX from the index alone: which files a query still reads, and its answer checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.scans import explain, opened, plain, truth

FORMATS = pytest.mark.parametrize("fmt", ["parquet", "orc"])


def same(spark: SparkSession, query: str) -> DataFrame:
    """Asserts that the query has the answer it has with skipping off; returns a fresh plan of it."""
    with plain(spark):
        expected = repr(sorted(spark.sql(query).collect(), key=repr))
    assert repr(sorted(spark.sql(query).collect(), key=repr)) == expected, query
    return spark.sql(query)


def read(df: DataFrame) -> int:
    """How many files the query's scans read."""
    return sum(scan["selected"] + scan["unindexed"] for scan in explain(df))


def answered(df: DataFrame) -> int:
    """For how many files the index answers."""
    return sum(scan["answered"] for scan in explain(df))


def write(spark: SparkSession, path: Path, fmt: str, *selects: str) -> None:
    """One file for each select."""
    for select in selects:
        spark.sql(select).coalesce(1).write.format(fmt).mode("append").save(str(path))


def view(spark: SparkSession, path: Path, fmt: str, name: str) -> str:
    """The folder as it is now, as a view."""
    spark.read.format(fmt).load(str(path)).createOrReplaceTempView(name)
    return name


def check_strict(spark: SparkSession, relation: str, predicates: list[str]) -> int:
    """
    The strict filter against plain Spark: of a file that count(*) does not open, all rows make the
    predicate TRUE, or none does, and the index answers for exactly those where all do. Returns
    for how many files it answered.
    """
    wrong, count = [], 0
    for predicate, files in zip(predicates, truth(spark, relation, predicates), strict=True):
        df = spark.sql(f"SELECT count(*) FROM {relation} WHERE {predicate}")
        scans = explain(df)
        if len(scans) != 1:
            continue  # no row is left, whatever the files hold
        closed = (files["true"] | files["false"] | files["null"]) - opened(df)
        mixed = closed & files["true"] & (files["false"] | files["null"])
        if mixed or len(closed & files["true"]) != scans[0]["answered"]:
            wrong.append(f"{predicate}: {sorted(mixed)}, {scans[0]['answered']} answered")
        count += scans[0]["answered"]
    assert not wrong, "\n".join(wrong)
    return count
