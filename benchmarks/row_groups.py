"""Estimates what index entries for row groups would save, compared with entries for whole files.

    python benchmarks/row_groups.py [--scale 4]

TPC-H lineitem is clustered by (l_partkey, l_suppkey) into files of 256 MiB, as in a large table.
Spark cuts each file that a query selects into splits, and packs the splits into tasks. With entries
for row groups, Spark could leave out the splits in which no row group can match. The query would
still read the same data, because Parquet's reader already skips such row groups. It would save
tasks, and for each of the splits one read of the footer. The last column shows a cheaper remedy: if
openCostInBytes is the size of a row group, Spark makes no smaller splits.

The bounds of the row groups come from the footers. The number of tasks follows from Spark's rules
for clusters of several sizes. For the cores of this machine, it is compared with Spark's own
number. Prints a table, and writes it to benchmarks/results/row_groups.md.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import report
from datasets import FOLDER, data_files, lineitem
from pyspark.sql import SparkSession

import pyzorder
from pyzorder import demo

COLUMNS = ("l_partkey", "l_suppkey")
#: Number of queries of each kind, and how many of them are compared with Spark's number of tasks.
QUERIES, CHECKED = 100, 10
CORES = (2, 32, 256)
#: Spark's defaults, in bytes: spark.sql.files.maxPartitionBytes and openCostInBytes.
MAX_SPLIT, OPEN_COST = 128 << 20, 4 << 20
#: The size of the row groups that OPTIMIZE writes, in bytes.
ROW_GROUP = 32 << 20


@dataclass(frozen=True)
class RowGroup:
    """A row group: the offset of its middle, to which Parquet assigns a split, and the lowest and
    highest value of each column."""

    middle: int
    bounds: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class File:
    size: int
    footer: int
    groups: tuple[RowGroup, ...]


Box = tuple[tuple[int, int] | None, ...]


def read(path: Path) -> File:
    """Reads a file's footer."""
    metadata = pq.read_metadata(path)
    names = [metadata.schema.column(i).name for i in range(metadata.num_columns)]
    groups = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunks = [group.column(i) for i in range(group.num_columns)]
        start = min(c.dictionary_page_offset or c.data_page_offset for c in chunks)
        length = sum(chunk.total_compressed_size for chunk in chunks)
        found = [chunks[names.index(name)].statistics for name in COLUMNS]
        groups.append(RowGroup(start + length // 2, tuple((s.min, s.max) for s in found)))
    return File(path.stat().st_size, metadata.serialized_size, tuple(groups))


def matches(group: RowGroup, box: Box) -> bool:
    return all(
        asked is None or (low <= asked[1] and asked[0] <= high)
        for (low, high), asked in zip(group.bounds, box, strict=True)
    )


def plan(
    files: list[File], box: Box, cores: int, by_group: bool = False, open_cost: int = OPEN_COST
) -> tuple[int, int]:
    """Returns the number of tasks of a query, and how many bytes of footers these tasks read.

    Spark packs the splits into tasks, the largest first, as long as they fit. With `by_group`, the
    splits without a matching row group are left out.
    """
    selected = [f for f in files if any(matches(g, box) for g in f.groups)]
    total = sum(file.size + open_cost for file in selected)
    size = min(MAX_SPLIT, max(open_cost, total // cores))
    lengths, footers = [], 0
    for file in selected:
        for start in range(0, file.size, size):
            length = min(size, file.size - start)
            inside = [g for g in file.groups if start <= g.middle < start + length]
            if not by_group or any(matches(g, box) for g in inside):
                lengths.append(length)
                footers += file.footer
    count, filled = 0, size + 1
    for length in sorted(lengths, reverse=True):
        if filled + length > size:
            count, filled = count + 1, 0
        filled += length + open_cost
    return count, footers


def boxes(files: list[File], side: float | None) -> Iterator[Box]:
    """Yields queries: lookups of one column, or boxes whose sides span the fraction `side` of each
    column's values."""
    random = np.random.default_rng(3)
    groups = [group for file in files for group in file.groups]
    ends = [
        (min(g.bounds[c][0] for g in groups), max(g.bounds[c][1] for g in groups))
        for c in range(len(COLUMNS))
    ]
    for number in range(QUERIES):
        if side is None:
            column = number % len(COLUMNS)
            value = int(random.integers(*ends[column], endpoint=True))
            yield tuple((value, value) if c == column else None for c in range(len(COLUMNS)))
        else:
            lows = [int(random.integers(a, b - int(side * (b - a)))) for a, b in ends]
            yield tuple(
                (low, low + int(side * (b - a))) for low, (a, b) in zip(lows, ends, strict=True)
            )


def measure(spark: SparkSession, folder: Path, files: list[File]) -> Iterator[list[str]]:
    """Yields a row for each kind of query and each number of cores."""
    here = spark.sparkContext.defaultParallelism
    table = spark.read.parquet(str(folder))
    for kind, side in (("lookup", None), ("box, 10% of each column", 0.1)):
        asked = list(boxes(files, side))
        for cores in sorted({here, *CORES}):
            plain = [plan(files, box, cores) for box in asked]
            grouped = [plan(files, box, cores, by_group=True) for box in asked]
            larger = [plan(files, box, cores, open_cost=ROW_GROUP) for box in asked]
            if cores == here:
                for box, (count, _) in zip(asked[:CHECKED], plain, strict=False):
                    planned = table.where(condition(box)).rdd.getNumPartitions()
                    assert planned == count, (box, planned, count)
            means = [np.mean(found, axis=0) for found in (plain, grouped, larger)]
            yield [
                kind, str(cores), *(f"{tasks:.1f}" for tasks, _ in means[:2]),
                f"{(means[0][1] - means[1][1]) / 1024:,.0f} KiB", f"{means[2][0]:.1f}",
            ]  # fmt: skip


def condition(box: Box) -> str:
    return " AND ".join(
        f"{name} BETWEEN {asked[0]} AND {asked[1]}"
        for name, asked in zip(COLUMNS, box, strict=True)
        if asked is not None
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=int, default=6, help="scale factor of lineitem")
    scale = parser.parse_args().scale
    spark = demo.start_spark()
    folder = FOLDER / "row groups"
    shutil.rmtree(folder, ignore_errors=True)
    lineitem(spark, scale).write.parquet(str(folder))
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", "256m")
    pyzorder.ZOrderTable.forPath(spark, str(folder)).optimize().executeZOrderBy(*COLUMNS)
    files = [read(path) for path in data_files(folder)]
    table = [["query", "cores", "tasks", "tasks with row groups", "footers saved",
              "tasks with openCostInBytes = 32m"]]  # fmt: skip
    for row in measure(spark, folder, files):
        table.append(row)
        print("  ".join(row), flush=True)
    groups = sum(len(file.groups) for file in files)
    report.write(
        "row_groups", "What index entries for row groups would save",
        f"TPC-H lineitem at scale factor {scale}: {len(files)} files with {groups} row groups, so "
        f"the index would have {groups / len(files):.1f} times as many entries. The figures are "
        f"averages of {QUERIES} queries.", table)  # fmt: skip
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
