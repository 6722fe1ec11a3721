"""On random tables, the files that `pyzorder.files` leaves out have no matching rows."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import pyzorder
from tests.fuzz import differential
from tests.fuzz.worlds import World, on_drawn
from tests.support.tables import data_files


class Tally:
    """Counts all files, the files that the jar skips, and the files that `pyzorder.files` leaves
    out. The counts are sums over all predicates."""

    def __init__(self) -> None:
        self.cases = self.files = self.jar = self.left_out = 0


def check(spark: SparkSession, folder: Path, world: World, tally: Tally) -> None:
    """Checks the predicates of a world (a random table with predicates), their negations, and their
    IS NULL forms."""
    table = folder / "t"
    with differential.session(spark, world):
        asked = differential.make(spark, table, world)
        if not asked:
            return
        total = len(data_files(table))
        for text, needed, jar in differential.against_jar(spark, asked):
            paths = pyzorder.files(table, text, time_zone=world.zone)
            found = {path.rsplit("/", 1)[-1] for path in paths}
            assert needed <= found, f"{world!r}\n{text}: leaves out {sorted(needed - found)}"
            tally.cases += 1
            tally.files += total
            tally.jar += total - len(jar)
            tally.left_out += total - len(found)


def test_leaves_out_no_matching_row(spark: SparkSession, tmp_path: Path) -> None:
    tally = Tally()

    def run(world: World) -> None:
        check(spark, tmp_path, world, tally)

    on_drawn(run, examples=4, cases=8)
    assert tally.left_out >= 0.4 * tally.jar > 0, vars(tally)
