"""Holds what pyzorder opens now against the committed results; a loss fails.

    python benchmarks/gate.py [--only layout,curve_ranges]

Only figures that every run gives alike: shares of files and of their bytes. No seconds, and no
other project. A subset of what `make bench-layout` and `make bench-curve` measure, by their own
code, in a few minutes. A gain is reported: measure again, and commit the results.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Another number of cores writes the rows that OPTIMIZE reads in other files, which compress
#: otherwise; a file more or less in a hundred comes from that.
TOLERANCE = 0.02

Line = Sequence[str]


@dataclass(frozen=True)
class Part:
    """One file of benchmarks/results, and how its lines are compared.

    key      columns that name a line
    same     columns that must not change
    less     columns of which less is better
    measure  gives lines as the file has them
    """

    name: str
    key: tuple[int, ...]
    same: tuple[int, ...]
    less: dict[int, str]
    measure: Callable[[SparkSession], Iterator[Line]]

    def named(self, line: Line) -> tuple[str, ...]:
        """What a line is of."""
        return tuple(line[column] for column in self.key)

    def compared(self, line: Line, known: Sequence[Line]) -> Iterator[tuple[str, str]]:
        """`loss` or `gain` or `same`, and a sentence, for each figure of a measured line."""
        committed = [old for old in known if self.named(old) == self.named(line)]
        of = f"{self.name}, {', '.join(self.named(line))}"
        if len(committed) != 1:
            yield "loss", f"{of}: {len(committed)} committed lines"
            return
        for column in self.same:
            kept = line[column] == committed[0][column]
            yield "same" if kept else "loss", f"{of}: {line[column]}, was {committed[0][column]}"
        for column, figure in self.less.items():
            digits = len(committed[0][column].partition(".")[2])
            now, before = float(line[column]), float(committed[0][column])
            slack = TOLERANCE * before + 0.5 * 10**-digits
            told = "loss" if now > before + slack else "gain" if now < before - slack else "same"
            yield told, f"{of}: {figure} {line[column]}, was {committed[0][column]}"


def _uniform(spark: SparkSession) -> Iterator[Line]:
    import layout
    from datasets import uniform

    own = {name: layout.OWN[name] for name in ("pyzorder", "pyzorder, hilbert")}
    yield from layout.measure(spark, uniform(2), 64, own)
    yield from layout.measure(spark, uniform(3), 100, own)


def _hard(spark: SparkSession) -> Iterator[Line]:
    import layout

    own = {"pyzorder": layout.OWN["pyzorder"]}
    for dataset in layout.DATASETS:
        if dataset.name in ("flights", "skewed", "correlated"):
            yield from layout.measure(spark, dataset, 90, own)


def _curve(spark: SparkSession) -> Iterator[Line]:
    import curve_ranges
    from datasets import uniform

    for method in ("direct", "boundaries"):
        yield from curve_ranges.measure(spark, uniform(2), 64, method)
    spark.conf.unset("spark.sql.zorder.optimize.method")


FILES = {4: "lookups open", 6: "boxes open", 7: "bytes of boxes"}
PARTS = [
    Part("layout_uniform", (0, 1, 2), (3,), FILES, _uniform),
    Part("layout", (0, 1, 2), (3,), FILES, _hard),
    Part("curve_ranges", (0, 1, 2, 3), (), {5: "with z-values"}, _curve),
]


def main() -> int:
    """1: something is worse than what is committed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", help="names of results, with commas")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",") if arguments.only else [part.name for part in PARTS]

    from pyzorder import demo

    spark = demo.start_spark()
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    counts = {"loss": 0, "gain": 0, "same": 0}
    for part in PARTS:
        if part.name in wanted:
            known = report.read(part.name)
            for line in part.measure(spark):
                for told, sentence in part.compared(line, known):
                    counts[told] += 1
                    print(f"{told}  {sentence}", flush=True)
    spark.stop()
    print(f"{counts['same']} figures as committed, {counts['gain']} better, {counts['loss']} worse")
    return 1 if counts["loss"] or not any(counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
