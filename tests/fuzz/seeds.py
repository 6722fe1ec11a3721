"""Checks the worlds (random tables with predicates) that one seed of the long fuzz test generates.
The checks run in the current process."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from tests.fuzz.differential import Tally, check
from tests.fuzz.worlds import World, on_drawn
from tests.support import sessions

#: The number of worlds per seed, and the number of predicates per world.
WORLDS, CASES = 10, 30


def session() -> SparkSession:
    """Returns this process's session, and creates the session on first use."""
    spark = sessions.session(memory="2g", spark__sql__shuffle__partitions="1")
    spark.sparkContext.setLogLevel("OFF")
    return spark


def one(number: int) -> Tally:
    """Checks the worlds of a seed. Raises AssertionError with the smallest difference found."""
    tally = Tally()
    spark = session()
    with tempfile.TemporaryDirectory() as folder:

        def run(world: World) -> None:
            tally.add(check(spark, Path(folder), world))

        try:
            on_drawn(run, examples=WORLDS, cases=CASES, number=number, shrink=True)
        except Exception as error:  # the original error may not be picklable
            notes = getattr(error, "__notes__", [])
            raise AssertionError("\n".join([f"{type(error).__name__}: {error}", *notes])) from None
    return tally
