"""Rows of the index table (sql/FORMAT.md, section "Index table")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyzorder.index.local_files import strange
from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.snapshots import Snapshot
from pyzorder.index.stored_types import FLAGS, SKETCH_FIELDS, schema_of
from pyzorder.index.stores import LocalStore, Stat, Store
from pyzorder.index.table_folder import TableFolder


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics of one column in one file. sql/FORMAT.md describes the fields.

    Attributes:
        bounds: minimum and maximum; None if they are unknown, or if all values are null or NaN.
            Dates and timestamps are days and microseconds since the epoch.
    """

    bounds: tuple[Any, Any] | None = None
    exact: bool = False
    null_count: int | None = None
    nan_seen: bool = True
    empty: bool = False
    settings_dependent: bool = False


@dataclass(frozen=True)
class FileEntry:
    """The index's row for one data file.

    Attributes:
        statistics: the statistics of each column. A column's statistics are unknown if this dict
            lacks the column, or contains it with a different type than the index.
    """

    path: str
    size: int
    modified: int
    num_records: int
    clustered_by: tuple[str, ...]
    read_settings: str
    statistics: dict[IndexedColumn, ColumnStatistics] = field(default_factory=dict)


def unchanged(store: Store, read: Collection[tuple[str, Stat]]) -> set[tuple[str, Stat]]:
    """Returns the files whose status has not changed since they were listed.

    If a file has changed, its statistics may describe an earlier state of the file, so it gets no
    entry.
    """
    now = store.stats([path for path, _ in read])
    return {(path, stat) for path, stat in read if now.get(path) == stat}


def is_foreign(store: Store, folder: TableFolder, path: str) -> bool:
    """Whether a file's rows may belong to another user. Such a file must not get an entry."""
    return isinstance(store, LocalStore) and strange(folder.root, path)


def table_of(columns: Sequence[IndexedColumn], entries: Sequence[FileEntry]) -> pa.Table:
    """Converts entries to rows of a snapshot."""
    schema = schema_of(columns)
    lists: list[list[Any]] = [
        [e.path for e in entries],
        [e.size for e in entries],
        [e.modified for e in entries],
        [e.num_records for e in entries],
        [list(e.clustered_by) for e in entries],
        [e.read_settings for e in entries],
        *([None] * len(entries) for _ in SKETCH_FIELDS),
    ]
    for column in columns:
        known = [e.statistics.get(column, ColumnStatistics()) for e in entries]
        lists += [[s.bounds[end] if s.bounds else None for s in known] for end in (0, 1)]
        lists.append([s.null_count for s in known])
        flags = FLAGS if column.is_float else FLAGS[1:]
        lists += [[bool(getattr(s, flag)) for s in known] for flag in flags]
    return pa.table(
        [_array(values, f.type) for values, f in zip(lists, schema, strict=True)], schema=schema
    )


def _array(values: list[Any], stored: pa.DataType) -> pa.Array:
    """Converts values to an array. Strings may be passed as bytes, which need not be valid
    UTF-8."""
    if stored == pa.string():
        octets = [v.encode() if isinstance(v, str) else v for v in values]
        return pa.array(octets, pa.binary()).view(pa.string())
    if pa.types.is_timestamp(stored) or pa.types.is_date(stored):
        numbers = pa.int32() if pa.types.is_date(stored) else pa.int64()
        return pa.array(values, numbers).view(stored)
    return pa.array(values, stored)


def has_gaps(snapshot: Snapshot) -> bool:
    """Whether a value is missing that every row of a snapshot has. Readers do not need all of these
    values, but pyzorder writes no snapshot without them."""
    required = (field.name for field in schema_of(snapshot.columns) if not field.nullable)
    known = snapshot.rows.column_names
    return any(name in known and snapshot.rows[name].null_count for name in required)


def kept_rows(
    old: Snapshot, columns: Sequence[IndexedColumn], keep: Callable[[pa.Table], Sequence[bool]]
) -> pa.Table:
    """Returns the rows that `keep` selects from a snapshot, with the columns of a new snapshot.

    A row keeps its reference to a segment of sketches only if all columns and the rows of all files
    in the segment are kept. Therefore, no sketch outlives its file's entry or its column.
    """
    rows = _with_sketches(old, columns, old.rows.filter(pa.array(keep(old.rows), pa.bool_())))
    unknown = table_of(columns, [])
    arrays = []
    same = {c.name for c in columns if c in old.columns}
    for f in unknown.schema:
        owner = next((c.name for c in columns if f.name.startswith(f"{c.name}_")
                      and f.name[len(c.name) + 1:] in _OF_COLUMN), None)  # fmt: skip
        if owner is None or owner in same:
            arrays.append(_as(rows[f.name], f.type))
        elif f.nullable:
            arrays.append(pa.nulls(rows.num_rows, f.type))
        else:
            arrays.append(pa.array([f.name.endswith("_nan_seen")] * rows.num_rows, pa.bool_()))
    return pa.table(arrays, schema=unknown.schema)


def _with_sketches(old: Snapshot, columns: Sequence[IndexedColumn], rows: pa.Table) -> pa.Table:
    """Returns a snapshot's rows, with references only to segments of sketches that may be kept."""
    segments: set[str] = set()
    if "sketch_file" in rows.column_names and set(old.pointer.columns) <= set(columns):
        kept, before = (Counter(table["sketch_file"].to_pylist()) for table in (rows, old.rows))
        segments = {s.file for s in old.pointer.sketches if kept[s.file] == before[s.file]}
    for f in SKETCH_FIELDS:
        values = pa.nulls(rows.num_rows, f.type)
        if segments:
            is_kept = pc.is_in(rows["sketch_file"], pa.array(sorted(segments), pa.string()))
            values = pc.if_else(is_kept, _as(rows[f.name], f.type), pa.scalar(None, f.type))
        place = rows.schema.get_field_index(f.name)
        rows = rows.append_column(f, values) if place < 0 else rows.set_column(place, f, values)
    return rows


_OF_COLUMN = {"minValue", "maxValue", "num_nulls", *FLAGS}


def _as(values: pa.ChunkedArray, stored: pa.DataType) -> pa.ChunkedArray:
    return values if values.type == stored else pc.cast(values, stored)
