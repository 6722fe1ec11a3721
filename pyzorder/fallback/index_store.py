"""Publishes snapshots of the index: sql/FORMAT.md, section "Index table"."""

from __future__ import annotations

import contextlib
import io
import os
import uuid
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyzorder.fallback.columns import stored_type
from pyzorder.fallback.own_files import create_if_absent, make_folder, remove, share
from pyzorder.fallback.snapshots import (
    IndexedColumn,
    Pointer,
    Snapshot,
    latest,
    pointer_name,
    read_incarnation,
    read_pointer,
    versions,
)
from pyzorder.fallback.stores import LocalStore, TableFolder

#: Older snapshots than this many are deleted when a new one is published.
KEPT_SNAPSHOTS = 10

_FILE_FIELDS = [
    pa.field("path", pa.string(), nullable=False),
    pa.field("size", pa.int64(), nullable=False),
    pa.field("modification_time", pa.int64(), nullable=False),
    pa.field("num_records", pa.int64(), nullable=False),
    pa.field(
        "clustered_by", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False
    ),
    pa.field("read_settings", pa.string(), nullable=False),
]

_FLAGS = ("nan_seen", "exact", "empty", "settings_dependent")


@dataclass(frozen=True)
class ColumnStatistics:
    """
    What is known of one column in one file; the fields are those of FORMAT.md.

    bounds  least and greatest value, as `stored_type` holds them; None: unknown, or no such value
    """

    bounds: tuple[Any, Any] | None = None
    exact: bool = False
    null_count: int | None = None
    nan_seen: bool = True
    empty: bool = False
    settings_dependent: bool = False


@dataclass(frozen=True)
class FileEntry:
    """One data file's row of the index; statistics by IndexedColumn.name, missing ones unknown."""

    path: str
    size: int
    modified: int
    num_records: int
    clustered_by: tuple[str, ...]
    read_settings: str
    statistics: dict[str, ColumnStatistics] = field(default_factory=dict)


def incarnation_of(folder: TableFolder) -> str:
    """The random id of this life of the table, made when there is none."""
    known = read_incarnation(LocalStore(), folder)
    while known is None:
        make_folder(folder.zorder)
        made = str(uuid.uuid4())
        if create_if_absent(folder.incarnation, made.encode()):
            return made
        known = read_incarnation(LocalStore(), folder)
    return known


def publish(
    folder: TableFolder,
    columns: Callable[[Sequence[IndexedColumn]], Sequence[IndexedColumn]],
    keep: Callable[[pa.Table], Sequence[bool]],
    entries: Iterable[FileEntry] = (),
    is_denied: Callable[[IndexedColumn], bool] = lambda column: False,
    life: str | None = None,
) -> Pointer:
    """Publishes a new snapshot: what `keep` keeps of the latest one's rows, and `entries`.

    Whoever publishes at the same time makes this load the newer snapshot and change that one. An
    unreadable index counts as one without entries. `columns`: from the columns that had statistics
    to those that shall have them; of one that is not kept, or has another type now, nothing stays.
    `life`: of the table, as a writer saw it; None: as it is now, or begun by this.
    """
    make_folder(folder.index)
    added = list(entries)
    while True:
        known = versions(LocalStore(), folder)
        base = known[-1] if known else 0
        old = latest(folder)
        if old is not None and old.pointer.version != base:
            old = None
        wanted = columns(old.columns if old is not None else ())
        kept = tuple(c for c in wanted if not is_denied(c))
        rows = table_of(kept, added)
        if old is not None:
            rows = pa.concat_tables([_kept(old, kept, keep), rows])
        incarnation = life or incarnation_of(folder)
        pointer = _try(folder, incarnation, base + 1, kept, rows.sort_by("path"))
        if pointer is not None:
            _delete_old(folder, is_denied)
            return pointer


def schema_of(columns: Sequence[IndexedColumn]) -> pa.Schema:
    """The columns of a snapshot's file."""
    fields = list(_FILE_FIELDS)
    for column in columns:
        stored = stored_type(column.data_type)
        fields += [pa.field(f"{column.name}_{end}", stored) for end in ("minValue", "maxValue")]
        fields.append(pa.field(f"{column.name}_num_nulls", pa.int64()))
        flags = _FLAGS if column.is_float else _FLAGS[1:]
        fields += [pa.field(f"{column.name}_{flag}", pa.bool_(), nullable=False) for flag in flags]
    return pa.schema(fields)


def table_of(columns: Sequence[IndexedColumn], entries: Sequence[FileEntry]) -> pa.Table:
    """Entries as rows of a snapshot."""
    schema = schema_of(columns)
    lists: list[list[Any]] = [
        [e.path for e in entries],
        [e.size for e in entries],
        [e.modified for e in entries],
        [e.num_records for e in entries],
        [list(e.clustered_by) for e in entries],
        [e.read_settings for e in entries],
    ]
    for column in columns:
        known = [e.statistics.get(column.name, ColumnStatistics()) for e in entries]
        lists += [[s.bounds[end] if s.bounds else None for s in known] for end in (0, 1)]
        lists.append([s.null_count for s in known])
        flags = _FLAGS if column.is_float else _FLAGS[1:]
        lists += [[bool(getattr(s, flag)) for s in known] for flag in flags]
    return pa.table(
        [_array(values, f.type) for values, f in zip(lists, schema, strict=True)], schema=schema
    )


def _array(values: list[Any], stored: pa.DataType) -> pa.Array:
    """Strings come as bytes, which need not be UTF-8."""
    if stored == pa.string():
        octets = [v.encode() if isinstance(v, str) else v for v in values]
        return pa.array(octets, pa.binary()).view(pa.string())
    if pa.types.is_timestamp(stored) or pa.types.is_date(stored):
        numbers = pa.int32() if pa.types.is_date(stored) else pa.int64()
        return pa.array(values, numbers).view(stored)
    return pa.array(values, stored)


def _kept(
    old: Snapshot, columns: Sequence[IndexedColumn], keep: Callable[[pa.Table], Sequence[bool]]
) -> pa.Table:
    rows = old.rows.filter(pa.array(keep(old.rows), pa.bool_()))
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


_OF_COLUMN = {"minValue", "maxValue", "num_nulls", *_FLAGS}


def _as(values: pa.ChunkedArray, stored: pa.DataType) -> pa.ChunkedArray:
    return values if values.type == stored else pc.cast(values, stored)


def _try(
    folder: TableFolder,
    incarnation: str,
    version: int,
    columns: tuple[IndexedColumn, ...],
    rows: pa.Table,
) -> Pointer | None:
    """The pointer; None: someone else published this version."""
    sink = io.BytesIO()
    pq.write_table(rows, sink, store_decimal_as_integer=True, compression="snappy")
    data = sink.getvalue()
    pointer = Pointer(
        folder,
        version,
        incarnation,
        f"_snapshot-{version}-{uuid.uuid4()}",
        len(data),
        zlib.crc32(data),
        rows.num_rows,
        columns,
    )
    path = f"{folder.index}/{pointer.file}"
    try:
        with open(path, "xb") as file:
            file.write(data)
    except OSError:
        remove(path)  # on a full disk, a part of it
        raise
    share(path)
    if create_if_absent(f"{folder.index}/{pointer.name}", pointer.to_json().encode()):
        return pointer
    remove(path)
    return None


def _delete_old(folder: TableFolder, is_denied: Callable[[IndexedColumn], bool]) -> None:
    """Takes away old snapshots, pointer last, and those that hold something of denied columns."""
    store = LocalStore()
    before = versions(store, folder)[:-1]
    old = before[: len(before) - KEPT_SNAPSHOTS + 1] if len(before) >= KEPT_SNAPSHOTS else []
    for version in before:
        with contextlib.suppress(Exception):
            columns = read_pointer(store, folder, version).columns
            if version in old or any(map(is_denied, columns)):
                _delete(store, folder, version)


def delete_replaced(folder: TableFolder, by: float) -> None:
    """Takes away the snapshots that were replaced by a time, in milliseconds of the store's clock:
    they still tell minima and maxima of rows that are gone."""
    store = LocalStore()
    known = versions(store, folder)
    pointers = [f"{folder.index}/{pointer_name(version)}" for version in known]
    replaced = store.stats(pointers[1:])
    for version, successor in zip(known, pointers[1:], strict=False):
        if successor in replaced and replaced[successor].modified <= by:
            _delete(store, folder, version)


def remove_of(folder: TableFolder, incarnation: str) -> None:
    """Takes away the snapshots of a life of the table that is over."""
    store = LocalStore()
    for version in versions(store, folder):
        with contextlib.suppress(Exception):  # another's, or a pointer that cannot be read
            pointer = read_pointer(store, folder, version)
            if pointer.incarnation == incarnation:
                remove(f"{folder.index}/{pointer.name}")
                remove(f"{folder.index}/{pointer.file}")


def _delete(store: LocalStore, folder: TableFolder, version: int) -> None:
    for name in store.names(folder.index):
        if name.startswith(f"_snapshot-{version}-"):
            remove(os.path.join(folder.index, name))
    remove(f"{folder.index}/{pointer_name(version)}")
