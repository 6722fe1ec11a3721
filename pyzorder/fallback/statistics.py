"""Collects the statistics of files with an aggregation in Spark.

Spark reads every value, so statistics in footers need not be trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyzorder.fallback.tables import Table, partition_columns
from pyzorder.index.entries import ColumnStatistics, FileEntry, is_foreign, unchanged
from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.read_settings import ReadSettings
from pyzorder.index.stores import Stat, Store, plain
from pyzorder.index.table_folder import TableFolder
from pyzorder.index.truncated_bounds import truncated

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

_TEMPORAL = {"date", "timestamp", "timestamp_ntz"}

#: For each type, SQL that converts bounds for Python. Other types, except decimals, have no bounds.
_SHOWN = {
    "boolean": "{0}", "byte": "{0}", "short": "{0}", "integer": "{0}", "long": "{0}",
    "float": "CAST({0} AS DOUBLE)", "double": "{0}", "date": "unix_date({0})",
    "timestamp": "unix_micros({0})",
    "timestamp_ntz": "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {0})",
    "string": "CAST({0} AS BINARY)", "binary": "{0}",
}  # fmt: skip

_ATOMIC = set(_SHOWN)


def indexable(schema: StructType, table: Table) -> list[IndexedColumn]:
    """Returns the leaf columns of a table that the fallback can index.

    The fallback cannot index

    - partition columns, which queries do not read from files,
    - CHAR columns, whose values are padded,
    - columns with a default, because files may lack these columns,
    - collated strings and TIME.
    """
    folders = partition_columns(table, [field.name for field in schema.fields])
    left_out = {name.lower() for name in (*folders, *table.defaults)}
    return [
        column
        for column in _leaves((), schema)
        if column.path[0].lower() not in left_out and not table.is_char(column.path[0])
    ]


def _leaves(prefix: tuple[str, ...], schema: StructType) -> Iterator[IndexedColumn]:
    for field in schema.fields:
        path, name = (*prefix, field.name), field.dataType.jsonValue()
        if field.dataType.typeName() == "struct":
            yield from _leaves(path, field.dataType)  # type: ignore[arg-type]
        elif isinstance(name, str) and (name in _ATOMIC or re.match("decimal|interval", name)):
            yield IndexedColumn(path, name)


def file_key() -> list[Column]:
    """Returns columns that identify a row's file: path, size, modification time in milliseconds."""
    from pyspark.sql import functions as F

    return [
        F.expr("_metadata.file_path").alias("path"),
        F.expr("_metadata.file_size").alias("size"),
        F.expr("unix_millis(_metadata.file_modification_time)").alias("modified"),
    ]


def collect(
    frame: DataFrame, columns: Sequence[IndexedColumn]
) -> dict[tuple[str, Stat], tuple[int, dict[IndexedColumn, ColumnStatistics]]]:
    """Returns the row count and the column statistics of each file that a DataFrame reads.

    Files without rows are omitted. Each key is a file's path and its status when it was listed.
    """
    from pyspark.sql import functions as F

    asked = [F.expr("count(1)").alias("rows")]
    for number, column in enumerate(columns):
        asked += [F.expr(text).alias(f"{name}{number}") for name, text in _aggregates(column)]
    grouped = frame.groupBy(*file_key()).agg(*asked)
    return {
        (local_path(row["path"]), Stat(row["size"], row["modified"])): (
            row["rows"],
            {c: _statistics(row, number, c) for number, c in enumerate(columns)},
        )
        for row in grouped.collect()
    }


def local_path(address: str) -> str:
    """Converts a file's URI from Spark's `_metadata.file_path` to a path."""
    from urllib.parse import unquote

    return plain(unquote(address))


def entries(
    store: Store,
    folder: TableFolder,
    found: Mapping[tuple[str, Stat], tuple[int, dict[IndexedColumn, ColumnStatistics]]],
    settings: ReadSettings,
) -> list[FileEntry]:
    """Returns entries for the files in a table's folder that have not changed since they were
    read."""
    valid = unchanged(store, found.keys())
    inside = folder.root + "/"
    return [
        FileEntry(
            folder.relative(path), *stat, rows, (), settings.fingerprint,
            {column: _held(known, settings) for column, known in statistics.items()},
        )
        for (path, stat), (rows, statistics) in found.items()
        if (path, stat) in valid and path.startswith(inside)
        and not is_foreign(store, folder, path)
    ]  # fmt: skip


def _held(known: ColumnStatistics, settings: ReadSettings) -> ColumnStatistics:
    """Drops bounds that depend on unknown settings, because no scan can use such bounds."""
    if known.settings_dependent and settings.temporal is None:
        return ColumnStatistics(None, False, known.null_count, known.nan_seen, known.empty, True)
    return known


def source(column: IndexedColumn) -> str:
    """Returns the SQL for a column."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in column.path)


def _aggregates(column: IndexedColumn) -> Iterator[tuple[str, str]]:
    text, shown = source(column), _shown(column)
    yield "values", f"count({text})"
    value = text
    if column.is_float:  # bounds do not cover NaN
        yield "nans", f"count_if(isnan({text}))"
        value = f"CASE WHEN NOT isnan({text}) THEN {text} END"
    if shown is not None:
        yield "least", shown.format(f"min({value})")
        yield "greatest", shown.format(f"max({value})")


def _shown(column: IndexedColumn) -> str | None:
    return "{0}" if column.data_type.startswith("decimal") else _SHOWN.get(column.data_type)


def _statistics(row: Any, number: int, column: IndexedColumn) -> ColumnStatistics:
    values, rows = row[f"values{number}"], row["rows"]
    nans = row[f"nans{number}"] if column.is_float else 0
    empty = values == nans
    bounds, exact = None, False
    if not empty and _shown(column) is not None:
        bounds = (row[f"least{number}"], row[f"greatest{number}"])
        exact = True
        if column.data_type in ("string", "binary"):
            octets = bytes(bounds[0]), bytes(bounds[1])
            bounds = truncated(*octets, column.data_type == "string")
            exact = bounds == octets
    return ColumnStatistics(
        bounds=bounds,
        exact=exact,
        null_count=rows - values,
        nan_seen=nans > 0,
        empty=empty,
        settings_dependent=column.data_type in _TEMPORAL and not empty,
    )
