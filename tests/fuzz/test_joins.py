"""Random queries with joins return the same rows with and without skipping.

`JOIN_QUERIES=20000 JOIN_SEED=0` starts a long run. A difference is reported with its seed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.fuzz.joins import DIMENSIONS, FACTS, Queries, create, settings_of
from tests.support.joins import rows
from tests.support.scans import FAILURES, explain, plain, settings

COUNT = int(os.environ.get("JOIN_QUERIES", "12"))
SEED = int(os.environ.get("JOIN_SEED", "100"))


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Iterator[None]:
    """Creates the tables."""
    create(spark, tmp_path)
    yield
    for name in (*FACTS, *DIMENSIONS):
        spark.catalog.dropTempView(name)


def test_join_keys_change_no_answer(spark: SparkSession, tables: None) -> None:
    skipped = done = 0
    for seed in range(SEED, SEED + COUNT):
        queries = Queries(seed)
        sql = queries.query()
        with settings(spark, **settings_of(queries.random)):
            try:
                with plain(spark):
                    expected = rows(spark.sql(sql))
            except FAILURES:
                continue  # Spark itself cannot answer the query
            df = spark.sql(sql)
            try:
                found = rows(df)
            except FAILURES as error:
                raise AssertionError(f"seed {seed}: {sql}\n{error}") from None
            assert found == expected, f"seed {seed}: {sql}"
            done += 1
            skipped += any(scan["skippedByJoins"] for scan in explain(df))
            if done % 50 == 0:
                print(f"{done} queries ran, {skipped} skipped files by join keys", flush=True)
    print(f"{done} of {COUNT} queries ran, {skipped} skipped files by join keys")
    assert done >= 0.9 * COUNT
    assert skipped >= 0.1 * done
