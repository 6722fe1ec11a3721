"""Presents the statistics of an index as a DataFrame, so that Spark can evaluate filters on
them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pyzorder.fallback.columns import sent_as, to_send
from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.snapshot_statistics import SnapshotStatistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def statistics_frame(
    spark: SparkSession,
    statistics: SnapshotStatistics,
    numbers: Iterable[int],
    files: Sequence[int],
) -> DataFrame:
    """Returns a DataFrame with one row per file and the statistics that filters refer to.

    The column `i` is the position of the file's entry in the snapshot. bound_filters lists the
    other columns.

    Args:
        numbers: positions of the columns to include.
        files: positions of the entries to include.
    """
    from pyspark.sql import functions as F

    lists: list[list[Any]] = [[int(i) for i in files]]
    schema, shown = ["i INT"], ["i"]
    for number in numbers:
        column = statistics.snapshot.columns[number]
        sent, made = sent_as(column.data_type) or ("BOOLEAN", "{0}")
        bounds = _bounds(statistics, column)
        flags = statistics.flags(column, known=[v is not None for v in bounds[0]])
        for letter, values in zip("mx", bounds, strict=True):
            lists.append([values[i] for i in files])
            schema.append(f"{letter}{number} {sent}")
            shown.append(f"{made.format(f'{letter}{number}')} AS {letter}{number}")
        for letter, flag in zip("bequv", flags, strict=True):
            lists.append(flag[list(files)].tolist())
            schema.append(f"{letter}{number} BOOLEAN")
            shown.append(f"{letter}{number}")
        one_zero = f"m{number} != 0" if column.is_float else "true"
        shown.append(f"{one_zero} AS w{number}")
    rows = list(zip(*lists, strict=True))
    return spark.createDataFrame(rows, ", ".join(schema)).select(*map(F.expr, shown))


def _bounds(statistics: SnapshotStatistics, column: IndexedColumn) -> tuple[list[Any], list[Any]]:
    """Returns the lower and upper bounds to send to Spark. A file's bounds are None unless both are
    usable."""
    rows = statistics.snapshot.rows
    if sent_as(column.data_type) is None:
        return [None] * rows.num_rows, [None] * rows.num_rows
    ends = [
        to_send(rows[f"{column.name}_{end}"], column.data_type) for end in ("minValue", "maxValue")
    ]
    known = [a is not None and b is not None for a, b in zip(*ends, strict=True)]
    known = [k and bool(u) for k, u in zip(known, statistics.agrees(column), strict=True)]
    least, greatest = (
        [v if k else None for v, k in zip(values, known, strict=True)] for values in ends
    )
    return least, greatest
