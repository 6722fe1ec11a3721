"""Lays rows out by their clustering columns: as OPTIMIZE does, with Spark's public API alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyzorder import interleave
from pyzorder.fallback import failures, kd_tree, placement
from pyzorder.fallback.order_keeping import decimal_of
from pyzorder.fallback.placement import Placement
from pyzorder.fallback.snapshots import IndexedColumn
from pyzorder.fallback.statistics import source

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Rows to sample in all (spark.sql.zorder.optimize.sampleSize), and of each new file at least.
SAMPLE_SIZE = 200_000
ROWS_PER_LEAF = 500

LEAF, PLACE = "_zorder_leaf", "_zorder_place"

_INTEGRAL = ("boolean", "byte", "short", "integer", "long")

#: Values as 64-bit numbers, doubles or bytes in the same order; where two become one, files are as
#: good as those can be told apart.
_KEYS = {
    "date": "CAST(unix_date({0}) AS BIGINT)", "timestamp": "unix_micros({0})",
    "timestamp_ntz": "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {0})",
    "float": "CAST({0} AS DOUBLE)", "double": "{0}", "string": "CAST({0} AS BINARY)",
    "binary": "{0}",
}  # fmt: skip


@dataclass(frozen=True)
class Group:
    """A table partition: its folder, the rows in it, the files to make of them."""

    folder: str
    rows: int
    leaves: int


def key_of(column: IndexedColumn) -> str:
    """The SQL expression that rows are laid out by. Raises ZOrderError: a type without one."""
    text, name = source(column), column.data_type
    if name in _INTEGRAL:
        return f"CAST({text} AS BIGINT)"
    if name in _KEYS:
        return _KEYS[name].format(text)
    if name.startswith("decimal"):
        precision, scale = decimal_of(name)
        if precision > 18:
            return f"CAST({text} AS DOUBLE)"
        return f"CAST({text} * CAST({10**scale} AS DECIMAL({scale + 1}, 0)) AS BIGINT)"
    raise failures.refused(column.name, f"is of type {name}, which cannot be clustered by here")


def laid_out(
    rows: DataFrame, group: Column, groups: Sequence[Group], columns: Sequence[IndexedColumn],
    data: Sequence[str],
) -> tuple[DataFrame, Placement]:  # fmt: skip
    """The rows, each in the task of its file, in the file's order, with the file's number in LEAF.

    Args:
        rows: of the table.
        group: number of a row's group.
        columns: to cluster by.
        data: names of the columns to keep.
    """
    from pyspark import cloudpickle
    from pyspark.sql import functions as F

    keys = list(_keys(columns))
    found = _placement(rows, group, groups, keys)
    for module in (placement, kd_tree):  # workers need not have pyzorder
        cloudpickle.register_pickle_by_value(module)
    place = F.pandas_udf(found.of, "leaf int, place bigint")  # type: ignore[call-overload]
    kept = [F.col(f"`{name.replace('`', '``')}`") for name in data]
    # A task that runs again reads the same rows in the same order, and numbers them as before.
    # Scattered: rows of a heavy cell may come at regular distances, such as every other one.
    turn = F.pmod(F.hash(F.monotonically_increasing_id()), F.lit(2**31 - 1)).cast("long")
    placed = rows.select(*kept, place(group, turn, *keys).alias(PLACE))
    told = placed.select(*kept, F.col(f"{PLACE}.leaf").alias(LEAF),
                         F.col(f"{PLACE}.place").alias(PLACE))  # fmt: skip
    ordered = told.repartition(int(found.first_leaf[-1]), F.col(LEAF)).sortWithinPartitions(
        LEAF, PLACE
    )
    return ordered.drop(PLACE), found


def _keys(columns: Sequence[IndexedColumn]) -> Iterator[Column]:
    """Value, with something else for null, and whether it is null, of each column."""
    from pyspark.sql import functions as F

    for column in columns:
        key = key_of(column)
        other = "X''" if column.data_type in ("string", "binary") else "0"
        yield F.expr(f"coalesce({key}, {other})")
        yield F.expr(f"{source(column)} IS NULL")


def _placement(
    rows: DataFrame, group: Column, groups: Sequence[Group], keys: Sequence[Column]
) -> Placement:
    from pyspark.sql import functions as F

    wanted = SAMPLE_SIZE / max(1, sum(g.rows for g in groups))
    shares = [min(1.0, max(wanted, g.leaves * ROWS_PER_LEAF / max(1, g.rows))) for g in groups]
    share = F.element_at(F.array(*map(F.lit, shares)), F.col("g") + 1)
    named = [key.alias(f"k{i}") for i, key in enumerate(keys)]
    drawn: Any = rows.select(group.alias("g"), *named).where(F.rand(42) < share).toPandas()
    values = [drawn[f"k{i}"].to_numpy() for i in range(len(keys))]
    numbers = drawn["g"].to_numpy().astype(np.int32)
    pairs = [(v, n.astype(bool)) for v, n in zip(values[::2], values[1::2], strict=True)]
    spread = interleave.spread(np.arange(1 << 16, dtype=np.int64), len(pairs), 16)
    bits = interleave.bits_per_column(len(pairs))
    return Placement(numbers, pairs, [g.leaves for g in groups], bits, spread)
