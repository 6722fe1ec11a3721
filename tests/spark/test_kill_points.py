"""SIGKILL at every boundary of a run: each row once, before and after the next writer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.journal_driver import Rewrite, read, through_journal
from tests.spark.tables import data_files

DRIVER = Path(__file__).parent / "journal_driver.py"
ALL = list(range(40))

# Where the run is killed, and the records that it has written by then.
POINTS = {
    "after-prepare": ["prepare"],
    "after-verify": ["prepare"],
    "after-markers": ["prepare"],
    "after-index": ["prepare"],
    "after-retire": ["prepare", "retire"],
    "mid-retire": ["prepare", "retire"],
    "before-commit": ["prepare", "retire"],
    "after-commit": ["outcome", "prepare", "retire"],
    "mid-move-in": ["outcome", "prepare", "retire"],
    "before-done": ["outcome", "prepare", "retire"],
    "after-done": ["done", "outcome", "prepare", "retire"],
}

#: The points that `make test` kills at as well; `make test-crash` takes them all.
SAMPLE = ("mid-retire", "before-commit", "after-commit", "mid-move-in")


def ids(df: DataFrame) -> list[int]:
    return sorted(row["id"] for row in df.select("id").collect())


@pytest.mark.parametrize(
    "point", [p if p in SAMPLE else pytest.param(p, marks=pytest.mark.crash) for p in POINTS]
)
def test_killed_at(spark: SparkSession, tmp_path: Path, point: str) -> None:
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).selectExpr("id", "id % 2 as day").write.partitionBy("day").parquet(
        str(table)
    )
    planned = read(spark, table)
    planned._jdf.queryExecution().executedPlan()
    made = spark.read.parquet(str(table))
    old = data_files(table)

    child = subprocess.run(
        [sys.executable, str(DRIVER), str(table), point],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(DRIVER.parents[2])},
    )
    assert child.returncode != 0
    records = [p.suffix[1:] for p in sorted((table / "_zorder" / "_journal").glob("_1.*"))]
    assert [r for r in records if r != "lease"] == POINTS[point], child.stderr
    committed = "outcome" in records

    assert ids(read(spark, table)) == ALL
    assert ids(through_journal(spark, made)) == ALL
    assert ids(planned) == ALL
    seen = {Path(name).name for name in read(spark, table).inputFiles()}
    assert (seen == {path.name for path in old}) == (not committed)

    Rewrite(spark, table).writer.abort()  # the next writer: begins, which recovers, and gives up

    assert ids(read(spark, table)) == ALL
    assert ids(spark.read.parquet(str(table))) == ALL
    assert (data_files(table) == old) == (not committed)
    assert ids(planned) == ALL
    assert not list(table.rglob("*.staged"))
    if point not in ("after-markers", "after-index"):
        assert not list(table.rglob("_zorder.*"))
