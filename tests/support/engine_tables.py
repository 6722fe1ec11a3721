"""Writes indexed tables without Spark, for tests of other engines."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq

import pyzorder
from pyzorder.index.entries import ColumnStatistics, FileEntry
from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.snapshot_writer import publish
from pyzorder.index.stores import LocalStore
from pyzorder.index.table_folder import TableFolder
from pyzorder.index.truncated_bounds import truncated

#: The read settings that an index entry records if all Spark settings have their default values.
SETTINGS = "caseSensitive=false;fieldIds=false;orcPositions= | timeZone=UTC"

_SPARK_NAMES = {
    "int8": "byte", "int16": "short", "int32": "integer", "int64": "long", "float": "float",
    "double": "double", "bool": "boolean", "string": "string", "binary": "binary",
    "date32[day]": "date", "timestamp[us, tz=UTC]": "timestamp", "timestamp[us]": "timestamp_ntz",
}  # fmt: skip

_EPOCH = datetime(1970, 1, 1)


def write(folder: Path, files: Mapping[str, pa.Table], **options: Any) -> None:
    """Writes data files. The extension of a file's name determines its format."""
    for name, rows in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".orc":
            po.write_table(rows, path)
        else:
            pq.write_table(rows, path, **options)


def index(
    folder: Path,
    files: Mapping[str, pa.Table],
    columns: Sequence[str] = (),
    changed: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Publishes an index with an entry for each file. The statistics come from the given rows.

    Args:
        columns: the dotted names of the columns to index. By default, all columns of the first file
            are indexed.
        changed: maps each column name to the statistics fields to replace in all entries.
    """
    first = next(iter(files.values()))
    known = [
        IndexedColumn(path, spark_name(data_type))
        for path, data_type in leaves(first.schema)
        if not columns or ".".join(path) in columns
    ]
    entries = []
    for name, rows in files.items():
        seen = (folder / name).stat()
        statistics = {}
        for column in known:
            found = vars(statistics_of(rows, column))
            found.update((changed or {}).get(column.name, {}))
            statistics[column] = ColumnStatistics(**found)
        entries.append(
            FileEntry(name, seen.st_size, seen.st_mtime_ns // 1_000_000, rows.num_rows, (),
                      SETTINGS, statistics)
        )  # fmt: skip
    publish(LocalStore(), TableFolder(str(folder)), lambda _: known, entries=entries)


def make(folder: Path, files: Mapping[str, pa.Table], columns: Sequence[str] = ()) -> Path:
    """Writes a table and indexes all its files. Returns the table's folder."""
    write(folder, files)
    index(folder, files, columns)
    return folder


def spoil(folder: Path, kept: Sequence[str]) -> None:
    """Overwrites all data files with garbage, except those in `kept`. The sizes and modification
    times of the files do not change."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        hidden = any(part[0] in "_." and "=" not in part for part in name.split("/"))
        if path.is_file() and not hidden and name not in kept:
            seen = path.stat()
            path.write_bytes(b"x" * seen.st_size)
            os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def ids_by_engines(folder: Path) -> list[list[int]]:
    """The sorted values of the column `id`, as read by PyArrow, DuckDB and Polars."""
    table = pyzorder.dataset(folder)
    with duckdb.connect() as connection:
        connection.register("ds", table)
        by_duckdb = [row[0] for row in connection.sql("SELECT id FROM ds").fetchall()]
    by_polars = pyzorder.scan_polars(folder).select("id").collect().to_series().to_list()
    return [sorted(found) for found in (table.to_table()["id"].to_pylist(), by_duckdb, by_polars)]


def leaves(schema: Any, above: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], pa.DataType]]:
    """The atomic columns of a schema, with their paths."""
    found = []
    for field in schema:
        path = (*above, field.name)
        if pa.types.is_struct(field.type):
            found += leaves([field.type.field(i) for i in range(field.type.num_fields)], path)
        else:
            found.append((path, field.type))
    return found


def spark_name(data_type: pa.DataType) -> str:
    """The name that Spark's JSON uses for an Arrow type."""
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    return _SPARK_NAMES[str(data_type)]


def statistics_of(rows: pa.Table, column: IndexedColumn) -> ColumnStatistics:
    """The statistics of a column. If the file lacks the column, all its values are null."""
    if column.path[0] not in rows.column_names:
        return ColumnStatistics(null_count=rows.num_rows, nan_seen=False, empty=True)
    values: list[Any] = rows[column.path[0]].to_pylist()
    for part in column.path[1:]:
        values = [None if value is None else value[part] for value in values]
    present = [value for value in values if value is not None]
    plain = [v for v in present if not (isinstance(v, float) and math.isnan(v))]
    bounds = (min(plain), max(plain)) if plain else None
    exact = True
    if bounds and column.data_type in ("string", "binary"):
        octets = [v.encode() if isinstance(v, str) else v for v in plain]
        bounds = truncated(min(octets), max(octets), column.data_type == "string")
        exact = bounds == (min(octets), max(octets))
    return ColumnStatistics(
        bounds=None if bounds is None else (_stored(bounds[0]), _stored(bounds[1])),
        exact=exact and bounds is not None,
        null_count=len(values) - len(present),
        nan_seen=len(plain) < len(present),
        empty=not plain,
    )


def _stored(value: Any) -> Any:
    if isinstance(value, datetime):
        since = value.astimezone(timezone.utc).replace(tzinfo=None) - _EPOCH if value.tzinfo else (
            value - _EPOCH
        )  # fmt: skip
        return since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds
    if isinstance(value, date):
        return (value - _EPOCH.date()).days
    return value
