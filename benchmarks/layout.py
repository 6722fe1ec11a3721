"""Files, row groups, bytes and rows that lookups and boxes read, layout by layout.

    python benchmarks/layout.py [--only lineitem,uniform_2] [--files 64,100,256,1000] [--resume]

Every table is written in each layout as about the same number of files; what a query opens follows
from the minima and maxima in the Parquet footers, so that the figures are the same each time. A
lookup is `column = value` for values of the table, averaged over values and columns; a box is a
range on several columns around the values of a row. The rows of a box are those that Spark's reader
gives back, which skips pages too. Other projects lay out the real and the hard tables, not the
uniform ones. Prints a table, and writes each line to benchmarks/results as soon as it is measured:
layout_uniform.md, layout.md, and, for each other project, how many times the files it opens of
those that pyzorder opens: layout_peers.md.
"""

from __future__ import annotations

import argparse
import itertools
import math
import shutil
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import deltalake
import numpy as np
import numpy.typing as npt
import peers
import pyarrow.parquet as pq
import report
from datasets import DATASETS, FOLDER, Dataset, data_files, size_of, uniform
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import pyzorder
from pyzorder import demo

LOOKUPS, BOXES, READ, DRAWN = 500, 300, 5, 50_000


# ---- layouts: each writes the rows into a folder as about so many Parquet files ----


def _as_it_came(df: DataFrame, columns: Sequence[str], files: int, folder: Path) -> None:
    per_file = math.ceil(df.count() / files)
    df.coalesce(1).write.option("maxRecordsPerFile", per_file).parquet(str(folder))


def _order_by(df: DataFrame, columns: Sequence[str], files: int, folder: Path) -> None:
    df.repartitionByRange(files, *columns).sortWithinPartitions(*columns).write.parquet(str(folder))


def _binary_z_value(df: DataFrame, columns: Sequence[str], files: int, folder: Path) -> None:
    keyed = df.selectExpr("*", f"zorder_value({', '.join(columns)}) AS z")
    laid = keyed.repartitionByRange(files, "z").sortWithinPartitions("z").drop("z")
    laid.write.parquet(str(folder))


def _delta_rs(df: DataFrame, columns: Sequence[str], files: int, folder: Path) -> None:
    """Again with another target size until the number of files is near enough."""
    source = folder.with_name(folder.name + ".source")
    df.coalesce(1).write.mode("overwrite").parquet(str(source))
    target = size_of(source) // files
    for _ in range(5):
        shutil.rmtree(folder, ignore_errors=True)
        deltalake.write_deltalake(str(folder), pq.read_table(source))
        table = deltalake.DeltaTable(str(folder))
        table.optimize.z_order(list(columns), target_size=target)
        table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        written = len(data_files(folder))
        if abs(written - files) <= 0.03 * files:
            break
        target = max(1, target * written // files)
    shutil.rmtree(source)


def _pyzorder(curve: str) -> Callable[[DataFrame, Sequence[str], int, Path], None]:
    def lay_out(df: DataFrame, columns: Sequence[str], files: int, folder: Path) -> None:
        df.write.parquet(str(folder))
        spark = df.sparkSession
        spark.conf.set("spark.sql.zorder.optimize.targetFileSize", str(size_of(folder) // files))
        spark.conf.set("spark.sql.zorder.optimize.curve", curve)
        table = pyzorder.ZOrderTable.forPath(spark, str(folder))
        table.optimize().executeZOrderBy(*columns)

    return lay_out


def _peer(name: str) -> Callable[[DataFrame, Sequence[str], int, Path], None]:
    def lay_out(df: DataFrame, columns: Sequence[str], files: int, folder: Path) -> None:
        source = Path(unquote(urlparse(df.inputFiles()[0]).path)).parent
        peers.lay_out(name, source, folder, columns, files)

    return lay_out


Layouts = dict[str, Callable[[DataFrame, Sequence[str], int, Path], None]]

OWN: Layouts = {
    "binary z-value": _binary_z_value,
    "pyzorder": _pyzorder("zorder"),
    "pyzorder, hilbert": _pyzorder("hilbert"),
}

OTHERS: Layouts = {
    f"delta-rs {deltalake.__version__}": _delta_rs,
    **{name: _peer(name) for name, peer in peers.PEERS.items() if peer.is_there},
}

ALL: Layouts = {"as it came": _as_it_came, "ORDER BY": _order_by, **OWN, **OTHERS}


# ---- what a query opens ----


@dataclass(frozen=True)
class Bounds:
    """Ranks of the least and greatest value of units (files or row groups), by column and unit."""

    least: npt.NDArray[np.int64]
    greatest: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]

    def opened(self, low: Sequence[int | None], high: Sequence[int | None]) -> tuple[float, float]:
        """The shares of the units and of their bytes that may hold a row of the box."""
        hit = np.ones(len(self.bytes), dtype=bool)
        for c, (a, b) in enumerate(zip(low, high, strict=True)):
            if a is not None and b is not None:
                hit &= (self.least[c] <= b) & (self.greatest[c] >= a)
        return float(hit.mean()), float(self.bytes[hit].sum() / self.bytes.sum())


class Queries:
    """Lookups and boxes around values of the table, and the ranks that they are compared by."""

    def __init__(self, dataset: Dataset, files: Sequence[Path]) -> None:
        self.dataset = dataset
        tables = [pq.read_table(file, columns=list(dataset.columns)) for file in files]
        rows = sum(table.num_rows for table in tables)
        chosen = np.sort(np.random.default_rng(7).choice(rows, min(rows, DRAWN), replace=False))
        starts = np.cumsum([0, *[table.num_rows for table in tables]])
        parts = [
            table.take(chosen[(chosen >= start) & (chosen < start + table.num_rows)] - start)
            for table, start in zip(tables, starts, strict=False)
        ]
        self.rows = [
            tuple(row)
            for part in parts
            for row in zip(*[part[name].to_pylist() for name in dataset.columns], strict=True)
        ]
        self.values = [
            sorted({row[c] for row in self.rows if row[c] is not None and row[c] == row[c]})
            for c in range(len(dataset.columns))
        ]
        self.ordered = [
            sorted(row[c] for row in self.rows if row[c] is not None and row[c] == row[c])
            for c in range(len(dataset.columns))
        ]
        random = np.random.default_rng(11)
        self.asked = [self.rows[i] for i in random.choice(len(self.rows), LOOKUPS, replace=False)]

    def bounds(self, units: Sequence[tuple[Sequence[tuple[Any, Any] | None], int]]) -> Bounds:
        """Minima and maxima as ranks: even ranks are values that are asked for, odd lie between."""
        least, greatest = [], []
        for c, values in enumerate(self.values):
            nothing = (2 * len(values), -2)  # a unit without values is never opened
            ranks = [
                nothing
                if unit[c] is None
                else nothing[::-1]
                if unit[c] == UNKNOWN
                else (_rank(values, unit[c][0]), _rank(values, unit[c][1]))
                for unit, _ in units
            ]
            least.append([low for low, _ in ranks])
            greatest.append([high for _, high in ranks])
        sizes = [size for _, size in units]
        return Bounds(np.array(least), np.array(greatest), np.array(sizes))

    def lookups(self, bounds: Bounds) -> list[float]:
        """For each column the mean share of the units that `column = value` opens."""
        means = []
        for c, values in enumerate(self.values):
            shares = []
            for row in self.asked:
                if row[c] is not None and row[c] == row[c]:
                    at: list[int | None] = [None] * len(self.values)
                    at[c] = _rank(values, row[c])
                    shares.append(bounds.opened(at, at)[0])
            means.append(float(np.mean(shares)))
        return means

    def boxes(self, bounds: Bounds) -> tuple[float, float]:
        """Mean shares of the units, and of their bytes, that a box opens."""
        shares = []
        for box in self.asked_boxes:
            low, high = (
                [None if side is None else _rank(self.values[c], side[end])
                 for c, side in enumerate(box)] for end in (0, 1))  # fmt: skip
            shares.append(bounds.opened(low, high))
        return float(np.mean([s for s, _ in shares])), float(np.mean([b for _, b in shares]))

    @cached_property
    def asked_boxes(self) -> list[list[tuple[Any, Any] | None]]:
        """For each box the least and the greatest value of each column; None: any value."""
        rows = [r for r in self.asked[:BOXES] if all(v is not None and v == v for v in r)]
        return [[self._side(c, value) for c, value in enumerate(row)] for row in rows]

    def _side(self, c: int, value: Any) -> tuple[Any, Any] | None:
        share, ordered = self.dataset.boxes[c], self.ordered[c]
        if share == 1:
            return None
        half = int(len(ordered) * share / 2)
        first = min(max(0, bisect_left(ordered, value) - half), len(ordered) - 2 * half - 1)
        return ordered[first], ordered[first + 2 * half]

    def rows_read(self, df: DataFrame) -> float:
        """Mean share of the rows that Spark's reader gives back for some of the boxes."""
        total, read = df.count(), []
        for box in self.asked_boxes[:READ]:
            some = df.select(*self.dataset.columns)
            for name, side in zip(self.dataset.columns, box, strict=True):
                if side is not None:
                    some = some.where(F.col(name).between(*map(F.lit, side)))
            some.toArrow()
            node = some._jdf.queryExecution().executedPlan()
            while not node.nodeName().startswith("Scan "):
                node = node.children().apply(0)
            read.append(node.metrics().apply("numOutputRows").value() / total)
        return float(np.mean(read))


def _rank(values: Sequence[Any], value: Any) -> int:
    place = bisect_left(values, value)
    return 2 * place if place < len(values) and values[place] == value else 2 * place - 1


#: Bounds of a unit whose footer tells none, although it has values.
UNKNOWN = (None, None)


def _bounds(statistics: Any, rows: int) -> tuple[Any, Any] | None:
    """None: there are only nulls."""
    if statistics is not None and statistics.has_min_max:
        return statistics.min, statistics.max
    only_nulls = statistics is not None and statistics.null_count == rows
    return None if only_nulls else UNKNOWN


def footers(folder: Path, columns: Sequence[str]) -> tuple[list[Any], list[Any]]:
    """Minima and maxima of the columns, and bytes: of each file, and of each row group."""
    files, groups = [], []
    for path in data_files(folder):
        footer = pq.ParquetFile(path).metadata
        of_file = []
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            by_name = {group.column(i).path_in_schema: group.column(i).statistics
                       for i in range(group.num_columns)}  # fmt: skip
            bounds = [_bounds(by_name[name], group.num_rows) for name in columns]
            of_file.append(bounds)
            groups.append((bounds, group.total_byte_size))
        merged = []
        for c in range(len(columns)):
            known = [bounds[c] for bounds in of_file if bounds[c] is not None]
            if UNKNOWN in known:
                merged.append(UNKNOWN)
            else:
                merged.append(
                    (min(b[0] for b in known), max(b[1] for b in known)) if known else None
                )
        files.append((merged, path.stat().st_size))
    return files, groups


def best_grid(files: int, columns: int) -> float:
    """Mean share of files that a lookup opens in the best integer grid of so many cells."""

    def grids(cells: int, left: int) -> Any:
        if left == 1:
            yield (cells,)
            return
        for n in range(1, cells + 1):
            for rest in grids(cells // n, left - 1):
                yield (n, *rest)

    return float(min(sum(1 / n for n in grid) / columns for grid in grids(files, columns)))


# ---- the table ----


def measure(
    spark: SparkSession, dataset: Dataset, files: int, layouts: Layouts
) -> Iterator[list[str]]:
    """One line a layout; raises AssertionError if a layout lost or doubled a row."""
    if not layouts:
        return
    df = dataset.read(spark)
    queries = Queries(dataset, data_files(FOLDER / f"{dataset.name}.parquet"))
    fingerprint = "count(*), sum(CAST(xxhash64(*) AS DECIMAL(38,0)))"
    expected = df.selectExpr(f"struct({fingerprint})").collect()
    for name, lay_out in layouts.items():
        folder = FOLDER / "laid out"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            lay_out(df, dataset.columns, files, folder)
        except subprocess.CalledProcessError as failure:  # another project's process
            print(f"{dataset.name}  {name}  failed: {failure}", flush=True)
            continue
        written = spark.read.schema(df.schema).parquet(*map(str, data_files(folder)))
        assert written.selectExpr(f"struct({fingerprint})").collect() == expected, name
        units, groups = footers(folder, dataset.columns)
        bounds = queries.bounds(units)
        lookups = queries.lookups(bounds)
        (box, box_bytes), (box_groups, _) = (
            queries.boxes(bounds), queries.boxes(queries.bounds(groups)))  # fmt: skip
        yield [
            str(files), dataset.name, name, str(len(units)), f"{np.mean(lookups):.3f}",
            " ".join(f"{share:.3f}" for share in lookups), f"{box:.3f}", f"{box_bytes:.3f}",
            f"{box_groups:.3f}", f"{queries.rows_read(written):.3f}",
            f"{best_grid(len(units), len(dataset.columns)):.3f}",
        ]  # fmt: skip


HEADER = ["wanted", "table", "layout", "files", "lookup", "by column", "box", "box, bytes",
          "box, row groups", "box, rows", "best grid"]  # fmt: skip


def against_pyzorder(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """For each other project its shares of files by pyzorder's, table by table; and their means."""
    shares = {(table, size, layout): (float(lookup), float(box))
              for size, table, layout, _, lookup, _, box, *_ in lines}  # fmt: skip
    rows = []
    for other in OTHERS:
        ratios = []
        for table, size, layout in shares:
            if layout == other:
                own = shares[table, size, "pyzorder"]
                ratios.append([theirs / ours for theirs, ours in zip(
                    shares[table, size, other], own, strict=True)])  # fmt: skip
                rows.append([other, table, size, *(f"{ratio:.2f}" for ratio in ratios[-1])])
        if ratios:
            means = np.exp(np.mean(np.log(ratios), axis=0))
            rows.append([other, "geometric mean", "", *(f"{mean:.2f}" for mean in means)])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names of tables, with commas")
    parser.add_argument(
        "--resume", action="store_true", help="keep the results that there are, add what is missing"
    )
    parser.add_argument("--files", default="64,100,256,1000", help="of the uniform tables")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.files.split(",")]
    rivals = {"pyzorder": OWN["pyzorder"], **OTHERS}
    parts = {
        "layout": [
            *((dataset, 90, ALL) for dataset in DATASETS),
            *((dataset, 100, rivals) for dataset in DATASETS),
            *((dataset, 256, OWN) for dataset in DATASETS if dataset.name == "mixed"),
        ],
        "layout_uniform": list(
            itertools.product([uniform(columns) for columns in (2, 3, 4)], sizes, [OWN])
        ),
    }
    wanted = arguments.only.split(",") if arguments.only else None
    spark = demo.start_spark()
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    absent = [name for name, peer in peers.PEERS.items() if not peer.is_there]
    if absent:
        print(f"Left out, because `make peers` has not fetched them: {', '.join(absent)}")
    for part, planned in parts.items():
        lines = report.read(part) if arguments.resume else []
        known = {tuple(line[:3]) for line in lines}
        print("  ".join(HEADER), flush=True)
        for dataset, files, layouts in planned:
            if wanted is not None and dataset.name not in wanted:
                continue
            missing = {
                name: way for name, way in layouts.items()
                if (str(files), dataset.name, name) not in known
            }  # fmt: skip
            for line in measure(spark, dataset, files, missing):
                print("  ".join(line), flush=True)
                lines.append(line)
                report.write(
                    part, "Layouts",
                    "Shares of a table's files that queries open; `make bench-layout`.",
                    [HEADER, *lines])  # fmt: skip
        compared = against_pyzorder(lines)
        for row in compared:
            print("  ".join(row), flush=True)
        if compared:
            report.write(
                "layout_peers", "Files opened, others' by pyzorder's",
                "How many times as many; the same rows, file counts and columns; "
                "`make bench-layout`.",
                [["layout", "table", "files", "lookup", "box"], *compared])  # fmt: skip
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
