"""Clusters rows as OPTIMIZE does, but uses only Spark's public API.

Each file is written by a separate task. Spark's own writer can therefore be used for any store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyzorder import interleave
from pyzorder.fallback import failures, kd_tree, placement
from pyzorder.fallback.placement import Placement
from pyzorder.fallback.statistics import source
from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.predicates.monotonic_functions import decimal_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: Number of rows to sample in total. spark.sql.zorder.optimize.sampleSize does not change it.
SAMPLE_SIZE = 200_000

#: Minimum number of rows to sample per new file.
ROWS_PER_LEAF = 500

KEY, GROUP, TASK, PLACE = "_zorder_key", "_zorder_group", "_zorder_task", "_zorder_place"

_INTEGRAL = ("boolean", "byte", "short", "integer", "long")

#: SQL that maps values to 64-bit integers, doubles or bytes and preserves their order. Distinct
#: values may be mapped to the same key, in which case files overlap more.
_KEYS = {
    "date": "CAST(unix_date({0}) AS BIGINT)", "timestamp": "unix_micros({0})",
    "timestamp_ntz": "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {0})",
    "float": "CAST({0} AS DOUBLE)", "double": "{0}", "string": "CAST({0} AS BINARY)",
    "binary": "{0}",
}  # fmt: skip


@dataclass(frozen=True)
class Group:
    """A table partition: its key, its number of rows, and the number of files to write."""

    key: str
    rows: int
    leaves: int


def key_of(column: IndexedColumn) -> str:
    """Returns the SQL expression by which a column's values are ordered.

    Raises:
        ZOrderError: the fallback cannot cluster by columns of this type.
    """
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
    raise failures.unsupported_type(column.name, name)


def partition_key(partitions: Sequence[str]) -> Column:
    """Returns a string column that identifies partitions by the values of the given columns."""
    from pyspark.sql import functions as F

    values = ", ".join(f"CAST({quoted(name)} AS STRING)" for name in partitions)
    return F.expr(f"to_json(array({values}))" if values else "''")


def laid_out(
    spark: SparkSession, rows: DataFrame, partitions: Sequence[str], groups: Sequence[Group],
    columns: Sequence[IndexedColumn],
) -> DataFrame:  # fmt: skip
    """Distributes the rows among tasks, one per new file, and sorts the rows of each file.

    Args:
        rows: the table's rows.
        partitions: names of the table's partition columns.
        groups: the table's partitions.
        columns: the clustering columns.
    """
    from pyspark import cloudpickle
    from pyspark.sql import functions as F

    keys, names = list(_keys(columns)), [F.col(quoted(name)) for name in rows.columns]
    grouped = _grouped(spark, rows, partitions, groups)
    found = _placement(grouped, groups, keys)
    tasks = int(found.first_leaf[-1])
    found.task_keys = _task_keys(spark, tasks)
    for module in (placement, kd_tree):  # pyzorder may not be installed on the workers
        cloudpickle.register_pickle_by_value(module)
    place = F.pandas_udf(found.of, "task int, place bigint")  # type: ignore[call-overload]
    # A retried task reads the same rows in the same order, so it computes the same row numbers. The
    # numbers are hashed because the rows of a cell with several files may come at regular
    # intervals, such as every other row.
    turn = F.pmod(F.hash(F.monotonically_increasing_id()), F.lit(2**31 - 1)).cast("long")
    placed = grouped.select(*names, place(F.col(GROUP), turn, *keys).alias(PLACE))
    task, order = F.col(f"{PLACE}.task").alias(TASK), F.col(f"{PLACE}.place").alias(PLACE)
    # Sort by the partition columns first. Otherwise, Spark's writer would sort by these columns and
    # destroy the order of the rows.
    first = [F.col(quoted(name)) for name in partitions]
    return (
        placed.select(*names, task, order)
        .repartition(tasks, F.col(TASK))
        .sortWithinPartitions(*first, PLACE)
        .drop(TASK, PLACE)
    )


def quoted(name: str) -> str:
    """Quotes a column's name for SQL."""
    return f"`{name.replace('`', '``')}`"


def _grouped(
    spark: SparkSession, rows: DataFrame, partitions: Sequence[str], groups: Sequence[Group]
) -> DataFrame:
    """Adds a column with the number of each row's group."""
    from pyspark.sql import functions as F

    if len(groups) == 1:
        return rows.withColumn(GROUP, F.lit(0))
    numbers = spark.createDataFrame(
        [(group.key, number) for number, group in enumerate(groups)], f"{KEY} STRING, {GROUP} INT"
    )
    keyed = rows.withColumn(KEY, partition_key(partitions))
    return keyed.join(F.broadcast(numbers), KEY)


def _task_keys(spark: SparkSession, tasks: int) -> npt.NDArray[np.int32]:
    """Returns, for each task, a number that Spark's hash partitioning assigns to that task."""
    candidates, found = 16 * tasks, dict[int, int]()
    while len(found) < tasks:
        numbers = spark.range(candidates).selectExpr(
            "int(id) AS k", f"int(pmod(hash(int(id)), {tasks})) AS task"
        )
        found = {row[0]: row[1] for row in numbers.groupBy("task").agg({"k": "min"}).collect()}
        candidates *= 2
    return np.array([found[task] for task in range(tasks)], dtype=np.int32)


def _keys(columns: Sequence[IndexedColumn]) -> Iterator[Column]:
    """Yields two columns for each clustering column: its value or a placeholder, and whether it is
    null."""
    from pyspark.sql import functions as F

    for column in columns:
        key = key_of(column)
        other = "X''" if column.data_type in ("string", "binary") else "0"
        yield F.expr(f"coalesce({key}, {other})")
        yield F.expr(f"{source(column)} IS NULL")


def _placement(rows: DataFrame, groups: Sequence[Group], keys: Sequence[Column]) -> Placement:
    from pyspark.sql import functions as F

    wanted = SAMPLE_SIZE / max(1, sum(g.rows for g in groups))
    shares = [min(1.0, max(wanted, g.leaves * ROWS_PER_LEAF / max(1, g.rows))) for g in groups]
    share = F.element_at(F.array(*map(F.lit, shares)), F.col(GROUP) + 1)
    named = [key.alias(f"k{i}") for i, key in enumerate(keys)]
    drawn: Any = rows.select(GROUP, *named).where(F.rand(42) < share).toPandas()
    values = [drawn[f"k{i}"].to_numpy() for i in range(len(keys))]
    numbers = drawn[GROUP].to_numpy().astype(np.int32)
    pairs = [(v, n.astype(bool)) for v, n in zip(values[::2], values[1::2], strict=True)]
    spread = interleave.spread(np.arange(1 << 16, dtype=np.int64), len(pairs), 16)
    bits = interleave.bits_per_column(len(pairs))
    return Placement(numbers, pairs, [g.leaves for g in groups], bits, spread)
