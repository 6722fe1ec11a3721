"""Determines which files and row groups queries open, based on the bounds in Parquet footers.

A lookup is a query with `column = value` for a value in the table. A box query restricts several
columns to ranges around the values of a row.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from datasets import Dataset, data_files
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

LOOKUPS, BOXES, READ, DRAWN = 500, 300, 5, 50_000


@dataclass(frozen=True)
class Bounds:
    """The bounds of units (files or row groups), as arrays of ranks that are indexed by column and
    unit."""

    least: npt.NDArray[np.int64]
    greatest: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]

    def opened(self, low: Sequence[int | None], high: Sequence[int | None]) -> tuple[float, float]:
        """Returns the share of units that may contain rows in a box, and the size of these units as
        a share of the total size of all units."""
        hit = np.ones(len(self.bytes), dtype=bool)
        for c, (a, b) in enumerate(zip(low, high, strict=True)):
            if a is not None and b is not None:
                hit &= (self.least[c] <= b) & (self.greatest[c] >= a)
        return float(hit.mean()), float(self.bytes[hit].sum() / self.bytes.sum())


class Queries:
    """Lookups of values in a table, box queries around these values, and the values' ranks."""

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
        """Converts bounds to ranks.

        Sampled values have even ranks. The values between them have odd ranks.
        """
        least, greatest = [], []
        for c, values in enumerate(self.values):
            nothing = (2 * len(values), -2)  # units without values are never opened
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
        """Returns, for each column, the mean share of units that a lookup opens."""
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
        """Returns the mean share of units that a box query opens, and the mean share of bytes in
        these units."""
        shares = []
        for box in self.asked_boxes:
            low, high = (
                [None if side is None else _rank(self.values[c], side[end])
                 for c, side in enumerate(box)] for end in (0, 1))  # fmt: skip
            shares.append(bounds.opened(low, high))
        return float(np.mean([s for s, _ in shares])), float(np.mean([b for _, b in shares]))

    @cached_property
    def asked_boxes(self) -> list[list[tuple[Any, Any] | None]]:
        """The lowest and highest value of each column in each box, or None for unrestricted
        columns."""
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
        """Returns the share of rows that Spark's reader returns, averaged over some box queries."""
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


#: The bounds of a unit that has values, but no bounds in the file's footer.
UNKNOWN = (None, None)


def _bounds(statistics: Any, rows: int) -> tuple[Any, Any] | None:
    """Returns the bounds in a footer, or None if all values are null."""
    if statistics is not None and statistics.has_min_max:
        return statistics.min, statistics.max
    only_nulls = statistics is not None and statistics.null_count == rows
    return None if only_nulls else UNKNOWN


def footers(folder: Path, columns: Sequence[str]) -> tuple[list[Any], list[Any]]:
    """Returns the bounds of the columns and the size in bytes, for each file and for each row
    group."""
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
    """Returns the mean share of files that a lookup opens if the files form the best possible
    grid."""

    def grids(cells: int, left: int) -> Any:
        if left == 1:
            yield (cells,)
            return
        for n in range(1, cells + 1):
            for rest in grids(cells // n, left - 1):
                yield (n, *rest)

    return float(min(sum(1 / n for n in grid) / columns for grid in grids(files, columns)))
