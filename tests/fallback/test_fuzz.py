"""On random tables, the fallback never skips a file with a matching row, and it skips nearly as
many files as the jar. `make test-fallback` tests more tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyzorder import fallback
from tests.fuzz import differential
from tests.fuzz.worlds import World, on_drawn
from tests.support import scans
from tests.support.fallback_files import kept
from tests.support.tables import data_files


class Tally:
    """Counts the files that the jar skips, the files that the fallback skips, and all files. The
    counts are sums over all predicates."""

    def __init__(self) -> None:
        self.cases = self.files = self.jar = self.fallback = self.same = 0


def check(spark: SparkSession, folder: Path, world: World, tally: Tally) -> None:
    """Checks the predicates of a world (a random table with predicates), their negations, and their
    IS NULL forms."""
    table = folder / "t"
    with differential.session(spark, world):
        asked = differential.make(spark, table, world)
        if not asked:
            return
        reader = fallback.read(spark, str(table), format=world.format, schema=world.ddl())
        total = len(data_files(table))
        for text, needed, jar in differential.against_jar(spark, asked):
            found = kept(table, reader.select_files(text))
            assert needed <= found, f"{world!r}\n{text}: skips {sorted(needed - found)}"
            tally.cases += 1
            tally.files += total
            tally.jar += total - len(jar)
            tally.fallback += total - len(found)
            tally.same += jar == found
        with scans.plain(spark):
            expected = spark.table(differential.VIEW).where(asked[0]).count()
            assert reader.where(asked[0]).count() == expected, f"{world!r}\n{asked[0]}"


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(n, marks=pytest.mark.fallback) for n in range(1, 13))]
)
def test_leaves_out_no_matching_row(spark: SparkSession, tmp_path: Path, number: int) -> None:
    tally = Tally()

    def run(world: World) -> None:
        check(spark, tmp_path, world, tally)

    on_drawn(run, examples=12 if number else 1, cases=8 if number else 2, number=number)
    print(vars(tally))
    if number:
        assert tally.fallback >= 0.9 * tally.jar > 0, vars(tally)
        assert tally.same >= 0.85 * tally.cases, vars(tally)
