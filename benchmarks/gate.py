"""Fails if queries open more or larger files than they do in the committed results.

    python benchmarks/gate.py [--only layout,curve_ranges]

The compared figures are the share of the files that queries open in pyzorder's layouts, and the
size of these files as a share of the table's size. These figures do not vary between runs.
`make bench-layout` and `make bench-curve` run the same code and also measure other figures. The
comparison takes a few minutes. If figures have improved, run these two benchmarks again and commit
the results.
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

#: Relative tolerance. The number of cores affects how the input of OPTIMIZE is divided into files,
#: and thus how well these files compress. This can change the number of new files by about 1%.
TOLERANCE = 0.02

Line = Sequence[str]


@dataclass(frozen=True)
class Part:
    """A file in benchmarks/results, and how its lines are compared.

    Attributes:
        name: the file's name without extension.
        key: columns that identify a line.
        same: columns that must not change.
        less: columns in which lower figures are better, and what these figures measure.
        measure: a function that measures the lines again, in the format of the file.
    """

    name: str
    key: tuple[int, ...]
    same: tuple[int, ...]
    less: dict[int, str]
    measure: Callable[[SparkSession], Iterator[Line]]

    def named(self, line: Line) -> tuple[str, ...]:
        """Returns the key of a line."""
        return tuple(line[column] for column in self.key)

    def compared(self, line: Line, known: Sequence[Line]) -> Iterator[tuple[str, str]]:
        """Yields `loss`, `gain` or `same` for each figure of a line, together with an
        explanation."""
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
    """Returns 1 if a figure is worse than the committed figure, or if no figures were compared."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", help="names of results, separated by commas")
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
