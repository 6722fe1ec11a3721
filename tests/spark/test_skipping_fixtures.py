"""sql/skipping: what filters over the index a predicate becomes, through Spark's optimizer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

FIXTURES = Path(__file__).parents[2] / "sql" / "skipping"


class Fixture(NamedTuple):
    """One line of a fixture file."""

    columns: str
    predicate: str
    index_filter: str


def fixtures_of(path: Path) -> list[Fixture]:
    """The lines of a file: `columns:` declares the table, `predicate | filter` is a fixture."""
    columns, found = "", []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("columns:"):
            columns = line.removeprefix("columns:").strip()
        elif line.strip() and not line.startswith("#"):
            predicate, _, index_filter = line.partition(" | ")
            found.append(Fixture(columns, predicate.strip(), index_filter.strip()))
    return found


def explain(df: DataFrame) -> list[dict[str, Any]]:
    """What skipping does to each scan of the query."""
    jvm = df.sparkSession._jvm  # type: ignore[attr-defined]
    api = jvm.io.pyzorder.api.PythonApi
    return json.loads(api.explain(df._jdf.queryExecution()))  # type: ignore[operator]


def index_filter(spark: SparkSession, table: str, predicate: str) -> str:
    """The filter that the scan of `table WHERE predicate` puts to its index."""
    scans = explain(spark.sql(f"SELECT * FROM {table} WHERE {predicate}"))
    # A predicate that is never TRUE leaves no scan.
    return scans[0]["indexFilter"] if scans else "false"


def all_rows_filter(spark: SparkSession, table: str, predicate: str) -> str:
    """The filter that proves the predicate TRUE for all rows of a file."""
    jvm = spark._jvm  # type: ignore[attr-defined]
    df = spark.sql(f"SELECT * FROM {table} WHERE {predicate}")
    return str(jvm.io.pyzorder.api.PythonApi.allRowsFilter(df._jdf.queryExecution()))


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.txt")), ids=lambda path: path.stem)
def test_fixtures(spark: SparkSession, path: Path) -> None:
    _check(spark, path, index_filter)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("all_rows/*.txt")), ids=lambda p: p.stem)
def test_all_rows_fixtures(spark: SparkSession, path: Path) -> None:
    _check(spark, path, all_rows_filter)


def _check(spark: SparkSession, path: Path, judge: Callable[[SparkSession, str, str], str]) -> None:
    table = f"fixture_{path.stem}"
    fixtures = fixtures_of(path)
    spark.sql(f"DROP TABLE IF EXISTS {table}")
    spark.sql(f"CREATE TABLE {table} ({fixtures[0].columns}) USING parquet")
    try:
        wrong = [
            f"{fixture.predicate} | {found}"
            for fixture in fixtures
            if (found := judge(spark, table, fixture.predicate))
            not in fixture.index_filter.split(" || ")
        ]
    finally:
        spark.sql(f"DROP TABLE {table}")
    assert not wrong, "\n".join(["got:", *wrong])
