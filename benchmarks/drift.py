"""Compares `pyzorder maintain` with fixed schedules of OPTIMIZE while a workload changes.

    python benchmarks/drift.py [--days 30] [--rows 50000] [--lookups 40]

Every day, rows are appended to a table, and lookups of single values read it. The columns that are
looked up change twice. Every night, `maintain` decides whether to rewrite files, and by which
columns, from the lookups recorded on the previous days (`zorder.clusterBy = 'auto'`). A fixed
schedule runs OPTIMIZE with the same columns every few days. A lookup reads the files whose bounds
in the Parquet footers contain the value. The cost of a schedule is the size of the files that the
lookups read and that OPTIMIZE replaces. The figures hardly vary between runs. Prints a table, and
writes it to benchmarks/results/drift.md. Fails if `maintain` costs more than 1.25 times as much as
the best fixed schedule.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import report
from appends import uniform
from datasets import FOLDER, size_of
from opened import footers
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import pyzorder
from pyzorder import demo

COLUMNS = ("a", "b", "c")
VALUES = 1_000_000
EVERY = (1, 5, 15)

#: The columns that are looked up in each third of the days.
PHASES: tuple[Sequence[str], ...] = (("a",), ("b",), ("a", "c"))

#: At most this multiple of the table's size at the end is rewritten in one night.
BUDGET = 1.25

#: `maintain` may cost this much of what the best fixed schedule costs.
MOST = 1.25

TABLE, APPLICATION = "drifting", "0" * 32
EXAMPLES = 32

Night = Callable[[int], int]
"""What runs in the night after a day. Returns the size of the replaced files."""


class Simulation:
    """The table, and what happens on each day. Every schedule sees the same rows and lookups."""

    def __init__(self, spark: SparkSession, days: int, rows: int, lookups: int) -> None:
        self.spark, self.days, self.lookups = spark, days, lookups
        self._source = FOLDER / "drifting source"
        self.folder = (FOLDER / TABLE).resolve()
        shutil.rmtree(self._source, ignore_errors=True)
        for day in range(days):
            third = F.expr(f"CAST(rand({-day}) * {VALUES} AS INT)")
            frame = uniform(spark, rows, day).withColumn("c", third)
            frame.write.parquet(str(self._source / str(day)))
        self.size = sum(size_of(self._source / str(day)) for day in range(days))

    def run(self, night: Night, is_auto: bool) -> tuple[int, int]:
        """Returns the size of the files that lookups read, and of those that were replaced."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.spark.sql(f"DROP TABLE IF EXISTS {TABLE}")
        self.spark.sql(
            f"CREATE TABLE {TABLE} (a INT, b INT, payload STRING, c INT) USING parquet "
            f"LOCATION '{self.folder}' TBLPROPERTIES ('zorder.optimize.targetFileSize' = '1m')"
        )
        if is_auto:
            self.spark.sql(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('zorder.clusterBy' = 'auto')")
        read = replaced = 0
        for day in range(self.days):
            for file in (self._source / str(day)).glob("*.parquet"):
                shutil.copy(file, self.folder)
            self.spark.sql(f"REFRESH TABLE {TABLE}")
            read += sum(self._read(column, value) for column, value in self.asked(day))
            replaced += night(day)
        return read, replaced

    def asked(self, day: int) -> Iterator[tuple[str, int]]:
        """The columns and values that are looked up on a day."""
        columns = PHASES[day * len(PHASES) // self.days]
        values = np.random.default_rng(day).integers(0, VALUES, self.lookups)
        return zip(itertools.cycle(columns), map(int, values))

    def _read(self, column: str, value: int) -> int:
        at = COLUMNS.index(column)
        return sum(size for bounds, size in self._files if bounds[at][0] <= value <= bounds[at][1])

    @property
    def _files(self) -> list[tuple[Sequence[tuple[int, int]], int]]:
        names = tuple(sorted(file.name for file in self.folder.glob("*.parquet")))
        if self._known[0] != names:
            self._known = names, footers(self.folder, COLUMNS)[0]
        return self._known[1]

    _known: tuple[tuple[str, ...], list[tuple[Sequence[tuple[int, int]], int]]] = ((), [])

    def record(self, day: int) -> None:
        """Records the lookups of all days up to this one, as the sessions would."""
        today = datetime.datetime.now(datetime.timezone.utc).date()
        first = today - datetime.timedelta(day)
        counts: dict[str, dict[str, int]] = {}
        examples: dict[str, list[list[str]]] = {}
        for past in range(day + 1):
            for column, value in self.asked(past):
                of = counts.setdefault(column, {})
                date = str(first + datetime.timedelta(past))
                of[date] = of.get(date, 0) + 1
                examples.setdefault(column, []).append([f"({column} = {value})"])
        shapes = [
            {
                "filters": [f"({column} = ?)"],
                "joinKeys": [],
                "days": counts[column],
                "last": 0,
                "examples": examples[column][-EXAMPLES:],
            }
            for column in counts
        ]
        folder = self.folder / "_zorder" / "_workload"
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"formatVersion": 3, "shapes": shapes})
        (folder / f"_{APPLICATION}.{day + 1}.json").write_text(text)


def maintained(simulation: Simulation) -> Night:
    """`maintain` with the columns that AUTO chooses."""
    budget = int(BUDGET * simulation.size)

    def night(day: int) -> int:
        simulation.record(day)
        outcomes = pyzorder.maintain(simulation.spark, TABLE, budget=budget)
        assert not [one for one in outcomes if one.result in ("failed", "in use")], outcomes
        replaced = sum(one.bytes for one in outcomes if one.result == "done")
        assert replaced <= budget
        return replaced

    return night


def fixed(simulation: Simulation, columns: Sequence[str], every: int) -> Night:
    """OPTIMIZE with these columns every few days."""

    def night(day: int) -> int:
        if day % every:
            return 0
        statement = f"OPTIMIZE {TABLE} ZORDER BY ({', '.join(columns)})"
        metrics = simulation.spark.sql(statement).collect()[0]["metrics"]
        return int(metrics["filesRemoved"]["totalSize"] or 0)

    return night


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--rows", type=int, default=50_000, help="rows that are appended every day")
    parser.add_argument("--lookups", type=int, default=40, help="lookups on every day")
    arguments = parser.parse_args()
    spark = demo.start_spark()
    simulation = Simulation(spark, arguments.days, arguments.rows, arguments.lookups)
    auto, costs = "maintain, with AUTO", dict[str, tuple[int, int]]()

    def measure(name: str, night: Night) -> None:
        costs[name] = simulation.run(night, is_auto=name == auto)
        print(name, *(f"{part / simulation.size:.2f}" for part in costs[name]), flush=True)

    measure(auto, maintained(simulation))
    measure("never", lambda day: 0)
    for length in range(1, len(COLUMNS) + 1):
        for columns in itertools.combinations(COLUMNS, length):
            for every in EVERY:
                name = f"({', '.join(columns)}) every {every} days".replace("every 1 days", "daily")
                measure(name, fixed(simulation, columns, every))
    best = min(sum(cost) for name, cost in costs.items() if name != auto)
    rows = [
        [name, *(f"{part / simulation.size:.2f}" for part in (*cost, sum(cost))),
         f"{sum(cost) / best:.2f}"]
        for name, cost in sorted(costs.items(), key=lambda item: sum(item[1]))
    ]  # fmt: skip
    header = ["schedule", "read by lookups", "rewritten", "sum", "sum, relative to the best fixed"]
    report.write(
        "drift", "Maintenance while the workload changes",
        f"{arguments.days} days, on each of which rows are appended and {arguments.lookups} values "
        "looked up: in the first third of the days in `a`, then in `b`, then in `a` and `c`. Sizes "
        "are relative to the table's size at the end. Measured by `make bench-drift`.",
        [header, *rows])  # fmt: skip
    print("\n".join("  ".join(line) for line in [header, *rows]))
    return 0 if sum(costs[auto]) <= MOST * best else 1


if __name__ == "__main__":
    sys.exit(main())
