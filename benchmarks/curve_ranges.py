"""Measures how many more files are skipped with z-value ranges than with minima and maxima alone.

    python benchmarks/curve_ranges.py [--files 64,256]

With the method `direct`, a file can start anywhere on the z-order curve, so its rows fill only part
of the box between its bounds. pyzorder therefore also records the smallest and largest z-value of
each file. With the method `boundaries`, each file is a cell, and its rows fill its box.
pyzorder.explain counts the opened files. Prints a table, and writes it to
benchmarks/results/curve_ranges.md.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
from collections.abc import Sequence

import numpy as np
import report
from datasets import FOLDER, Dataset, data_files, size_of, uniform
from pyspark.sql import Row, SparkSession

import pyzorder
from pyzorder import demo

BOXES, SPAN = 60, 1_000_000_000


def boxes(columns: Sequence[str], side: float) -> list[dict[str, tuple[int, int]]]:
    """Returns boxes whose sides span the fraction `side` of each column's values. If `side` is 0,
    returns lookups, each of which restricts only one column."""
    random = np.random.default_rng(5)
    drawn = []
    for i in range(BOXES):
        named = columns if side > 0 else [columns[i % len(columns)]]
        lows = random.integers(0, int((1 - side) * SPAN), len(named))
        drawn.append(
            {c: (int(low), int(low + side * SPAN)) for c, low in zip(named, lows, strict=True)}
        )
    return drawn


def by_bounds(entries: Sequence[Row], box: dict[str, tuple[int, int]]) -> int:
    """Returns how many files a query for this box opens without z-value ranges."""
    return sum(
        all(
            e[f"{c}_minValue"] <= high and low <= e[f"{c}_maxValue"]
            for c, (low, high) in box.items()
        )
        for e in entries
    )


def measure(spark: SparkSession, dataset: Dataset, files: int, method: str) -> list[list[str]]:
    """Returns one line for lookups and one for box queries that span a tenth of each column's
    values."""
    folder = FOLDER / "laid out"
    shutil.rmtree(folder, ignore_errors=True)
    dataset.read(spark).write.parquet(str(folder))
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", str(size_of(folder) // files))
    spark.conf.set("spark.sql.zorder.optimize.method", method)
    pyzorder.ZOrderTable.forPath(spark, str(folder)).optimize().executeZOrderBy(*dataset.columns)
    entries = spark.sql(f"SELECT * FROM skipping_index('{folder}')").collect()
    table = spark.read.parquet(str(folder))
    total = len(data_files(folder))
    lines = []
    for kind, side in (("lookup", 0.0), ("box", 0.1)):
        opened = bounds = 0
        for box in boxes(dataset.columns, side):
            condition = " AND ".join(f"{c} BETWEEN {a} AND {b}" for c, (a, b) in box.items())
            (scan,) = pyzorder.explain(table.where(condition))
            opened += scan.opened
            bounds += by_bounds(entries, box)
        lines.append([
            dataset.name, method, str(total), kind, f"{bounds / BOXES / total:.4f}",
            f"{opened / BOXES / total:.4f}", f"{opened / bounds:.2f}",
        ])  # fmt: skip
        print("  ".join(lines[-1]), flush=True)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", default="64,256", help="numbers of files, separated by commas")
    arguments = parser.parse_args()
    spark = demo.start_spark()
    header = ["table", "method", "files", "query", "bounds only", "with z-values", "ratio"]
    lines = [
        line
        for columns, files, method in itertools.product(
            (2, 3), map(int, arguments.files.split(",")), ("direct", "boundaries")
        )
        for line in measure(spark, uniform(columns), files, method)
    ]
    spark.stop()
    said = (
        "The figures are the shares of a table's files that queries open. Measured by "
        "`make bench-curve`."
    )
    title = "What z-values save in addition to minima and maxima"
    report.write("curve_ranges", title, said, [header, *lines])
    return 0


if __name__ == "__main__":
    sys.exit(main())
