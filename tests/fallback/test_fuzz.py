"""Drawn tables and predicates: the fallback leaves out no file with a matching row, and opens every
file that the jar opens. `make test-fallback` draws more."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from pyspark.sql import SparkSession

from pyzorder import fallback
from tests.fallback.files import kept
from tests.fuzz import differential
from tests.fuzz.worlds import World, worlds, write
from tests.spark import indexes, scans
from tests.spark.tables import data_files


class Tally:
    """Of all predicates: files of the tables, what the jar skips, what the fallback leaves out."""

    def __init__(self) -> None:
        self.cases = self.files = self.jar = self.fallback = self.same = 0


def check(spark: SparkSession, folder: Path, world: World, tally: Tally) -> None:
    """Asserts it for a world's predicates, their negations and their being NULL."""
    shutil.rmtree(folder, ignore_errors=True)
    table = folder / "t"
    table.mkdir(parents=True)
    with differential.session(spark, world):
        for file in world.files:
            write(spark, table, world, file)
        schema = spark.sql(f"SELECT * FROM (SELECT {differential.nulls(world)}) LIMIT 0").schema
        frame = spark.read.schema(world.ddl()).format(world.format).load(str(table))
        try:
            with scans.plain(spark):
                differential.run(frame)
        except scans.FAILURES:
            return
        indexes.build(spark, table, world.format, schema)
        gone = [name for name in world.unindexed if (table / name).exists()]
        if gone:
            indexes.remove(spark, table, gone)
        for action, file in world.later:
            if action == "remove":
                (table / file.name).unlink(missing_ok=True)
            else:
                write(spark, table, world, file)
        if not data_files(table):
            return
        frame = spark.read.schema(world.ddl()).format(world.format).load(str(table))
        frame.createOrReplaceTempView("fuzzed")
        asked = differential.answerable(spark, "fuzzed", world.predicates)
        if asked is None:
            return
        reader = fallback.read(spark, str(table), format=world.format, schema=world.ddl())
        total = len(data_files(table))
        for predicate, files in zip(asked, scans.truth(spark, "fuzzed", asked), strict=True):
            for text, needed in (
                (predicate, files["true"]),
                (f"NOT ({predicate})", files["false"]),
                (f"({predicate}) IS NULL", files["null"]),
            ):
                jar = scans.opened_or_none(spark, f"SELECT * FROM fuzzed WHERE {text}")
                if jar is None:
                    continue
                found = kept(table, reader.select_files(text))
                assert needed <= found, f"{world!r}\n{text}: leaves out {sorted(needed - found)}"
                tally.cases += 1
                tally.files += total
                tally.jar += total - len(jar)
                tally.fallback += total - len(found)
                tally.same += jar == found
        if asked:
            with scans.plain(spark):
                expected = frame.where(asked[0]).count()
                assert reader.where(asked[0]).count() == expected, f"{world!r}\n{asked[0]}"


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(n, marks=pytest.mark.fallback) for n in range(1, 13))]
)
def test_leaves_out_no_matching_row(spark: SparkSession, tmp_path: Path, number: int) -> None:
    tally = Tally()

    @seed(number)
    @settings(
        max_examples=2 if number == 0 else 12,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(worlds(cases=4 if number == 0 else 8))
    def run(world: World) -> None:
        check(spark, tmp_path, world, tally)

    run()
    print(vars(tally))
    if number:
        assert tally.fallback >= 0.7 * tally.jar > 0, vars(tally)
