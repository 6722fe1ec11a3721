"""A short run of the fuzz; `make fuzz CASES=50000` is the long one."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from pyspark.sql import SparkSession

from tests.fuzz.differential import Tally, check
from tests.fuzz.worlds import World, worlds


def test_skipping_changes_no_answer(spark: SparkSession, tmp_path: Path) -> None:
    tally = Tally()

    @settings(
        max_examples=5,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(worlds(cases=8))
    def run(world: World) -> None:
        tally.add(check(spark, tmp_path, world))

    run()
    assert tally.pruned >= 0.3 * tally.cases > 0, tally
