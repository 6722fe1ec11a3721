"""A short run of the fuzz test. `make fuzz CASES=50000` starts a long one."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.fuzz.differential import Tally, check
from tests.fuzz.worlds import World, on_drawn


def test_skipping_changes_no_answer(spark: SparkSession, tmp_path: Path) -> None:
    tally = Tally()

    def run(world: World) -> None:
        tally.add(check(spark, tmp_path, world))

    on_drawn(run, examples=5, cases=8)
    assert tally.pruned >= 0.3 * tally.cases > 0, tally


def test_an_index_from_footers_changes_no_answer(spark: SparkSession, tmp_path: Path) -> None:
    tally = Tally()

    def run(world: World) -> None:
        if world.format == "parquet":
            tally.add(check(spark, tmp_path, world, by_python=True))

    on_drawn(run, examples=8, cases=8)
    assert tally.pruned >= 0.1 * tally.cases > 0, tally
