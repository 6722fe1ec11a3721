"""Reads snapshots of the index table (sql/FORMAT.md, section "Index table")."""

from __future__ import annotations

import io
import logging
import zlib
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyzorder.index.parquet import footer_checks, pages
from pyzorder.index.pointers import (
    IndexedColumn,
    Pointer,
    Unusable,
    read_incarnation,
    read_pointer,
    versions,
)
from pyzorder.index.stored_types import FILE_FIELDS, SKETCH_FIELDS, fields_of, stored_type
from pyzorder.index.stores import Store
from pyzorder.index.table_folder import TableFolder
from pyzorder.text.printable import on_one_line

log = logging.getLogger(__name__)

#: Maximum number of values in a list, such as the names of an entry's clustering columns, of which
#: there are at most 63.
_MOST_VALUES = 64

#: The strings of a decoded snapshot, counting each repetition, are limited to `_LEAST_TEXT` bytes
#: plus `_MOST_TEXT` bytes for every byte of the file.
_MOST_TEXT, _LEAST_TEXT = 64, 16 << 20

#: The maximum memory in bytes for the rows of one snapshot, and for all cached rows together.
MOST_MEMORY = 1 << 30

#: The approximate memory in bytes for an entry, excluding the values in its columns.
_ENTRY_BYTES = 64

#: The maximum size of a decimal in bytes. A decimal has at most 38 digits.
_DECIMAL_BYTES = 16

#: The maximum number of characters of a reason in a warning. Reasons may contain text from the
#: index.
_LONGEST_REASON = 200

#: The codecs that pyzorder uses, in Scala and in Python. Other codecs can compress gigabytes to a
#: few KiB. Snappy's compression ratio is at most 22.
_CODECS = ("SNAPPY", "UNCOMPRESSED")

#: Maximum number of snapshots whose rows are cached. The least recently used snapshot is dropped
#: first.
_KEPT = 8
#: Each entry keeps its store alive, because the store's key may be the memory address of its file
#: system.
_loaded: OrderedDict[tuple[Hashable, Pointer], tuple[Store, pa.Table]] = OrderedDict()
_warned: set[str] = set()


@dataclass(frozen=True)
class Snapshot:
    """An immutable state of the index. Each row of `rows` is the entry of a data file."""

    pointer: Pointer
    rows: pa.Table

    @cached_property
    def columns(self) -> tuple[IndexedColumn, ...]:
        """The columns with usable statistics."""
        types = {f.name: f.type for f in self.rows.schema}
        return tuple(
            c for c in self.pointer.columns
            if types.get(f"{c.name}_minValue") == stored_type(c.data_type)
        )  # fmt: skip


def latest(store: Store, folder: TableFolder) -> Snapshot | None:
    """Returns the newest snapshot, or None if there is no usable index.

    If the index exists but cannot be used, logs a warning once.
    """
    try:
        known = versions(store, folder)
        if not known:
            return None
        pointer = read_pointer(store, folder, known[-1])
        if read_incarnation(store, folder) != pointer.incarnation:
            raise Unusable(
                "it belongs to another table, or to this table before it was overwritten"
            )
        return Snapshot(pointer, _rows(store, pointer))
    except Exception as failure:  # a broken index must not make a query fail
        _warn(folder, failure)
        return None


def _rows(store: Store, pointer: Pointer) -> pa.Table:
    key = (store.key, pointer)
    if key in _loaded:
        _loaded.move_to_end(key)
        return _loaded[key][1]
    data = store.read(f"{pointer.folder.index}/{pointer.file}")
    if len(data) != pointer.length:
        raise Unusable(f"{pointer.file} has {len(data)} bytes instead of {pointer.length}")
    if zlib.crc32(data) != pointer.crc32:
        raise Unusable(f"{pointer.file} does not match the checksum in its pointer")
    rows = _decoded(data, pointer)
    _loaded[key] = store, rows
    while len(_loaded) > _KEPT or sum(rows.nbytes for _, rows in _loaded.values()) > MOST_MEMORY:
        _loaded.popitem(last=False)
    return rows


def _decoded(data: bytes, pointer: Pointer) -> pa.Table:
    """Decodes the rows of a snapshot.

    If all rows have the same value, Parquet stores it once, so a small forged file could use up
    all memory. Files that pyzorder cannot have written are rejected.
    """
    footer_checks.readable(data)
    file = pq.ParquetFile(io.BytesIO(data))
    found = file.metadata
    groups = [found.row_group(g) for g in range(found.num_row_groups)]
    if not found.num_rows == sum(g.num_rows for g in groups) == pointer.num_files:
        raise Unusable(f"{pointer.file} has {found.num_rows} rows instead of {pointer.num_files}")
    if found.num_rows > len(data):  # paths are unique, so every entry takes at least one byte
        raise Unusable(f"{pointer.file} has {found.num_rows} rows in {len(data)} bytes")
    chunks = [g.column(c) for g in groups for c in range(found.num_columns)]
    if sum(max(0, chunk.total_compressed_size) for chunk in chunks) > len(data):
        raise Unusable(f"{pointer.file} has column chunks that overlap")
    codecs = {chunk.compression for chunk in chunks}
    if not codecs.issubset(_CODECS):
        raise Unusable(f"{pointer.file} is compressed with {', '.join(sorted(codecs))}")
    values = max((chunk.num_values for chunk in chunks), default=0)
    if values > _MOST_VALUES * found.num_rows:
        raise Unusable(f"{pointer.file} has {values} values in a list column")
    fields = _readable(file, pointer)
    widths = {f.name: _width(f.type) for f in fields}
    needed = len(data) + found.num_rows * _ENTRY_BYTES
    stored_text = 0
    for group in groups:
        for chunk in (group.column(c) for c in range(group.num_columns)):
            width = _width_of(chunk.path_in_schema, widths)
            needed += max(chunk.num_values, group.num_rows) * width
            if width and group.num_rows > 0:
                size = pages.decoded_size(data, chunk)
                if size is None:
                    raise Unusable(f"{pointer.file} has pages that pyzorder does not write")
                stored_text += size if chunk.physical_type == "BYTE_ARRAY" else 0
    _check_memory(needed + stored_text, pointer)
    texts = {chunk.path_in_schema for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"}
    rows = pq.read_table(io.BytesIO(data), columns=fields.names, read_dictionary=sorted(texts))
    if rows.num_rows != pointer.num_files:
        raise Unusable(f"{pointer.file} has {rows.num_rows} rows instead of {pointer.num_files}")
    text_bytes = sum(map(_text_bytes, rows.columns))
    if text_bytes > _LEAST_TEXT + _MOST_TEXT * len(data):
        raise Unusable(f"{pointer.file} has {len(data)} bytes but {text_bytes} bytes of strings")
    _check_memory(needed + text_bytes, pointer)
    rows = rows.cast(fields)
    _check_files(rows, pointer)
    return rows


def _readable(file: pq.ParquetFile, pointer: Pointer) -> pa.Schema:
    """Returns the schema of the rows, without columns whose statistics cannot be used.

    Raises:
        Unusable: a field that describes files is missing or has the wrong type.
    """
    stored = {f.name: f for f in file.schema_arrow}
    leaves = (file.schema.column(c) for c in range(file.metadata.num_columns))
    long = {leaf.path for leaf in leaves if _may_be_long_decimal(leaf)}

    def fit(fields: list[pa.Field]) -> bool:
        return all(_is_like(f, stored.get(f.name)) and f.name not in long for f in fields)

    if not fit(FILE_FIELDS):
        raise Unusable(f"{pointer.file} lacks a required column, or one has the wrong type")
    fields = [*FILE_FIELDS, *(SKETCH_FIELDS if fit(SKETCH_FIELDS) else ())]
    unfit = []
    for column in dict.fromkeys(pointer.columns):
        own = fields_of(column)
        if fit(own):
            fields += own
        else:
            unfit.append(column.name)
    if unfit:
        warn_once(
            pointer.folder, "is used without the statistics of columns that cannot be read",
            ", ".join(unfit),
        )  # fmt: skip
    return pa.schema({f.name: stored[f.name] for f in fields}.values())


def _is_like(field: pa.Field, other: pa.Field | None) -> bool:
    if other is None or not pa.types.is_list(field.type):
        return other is not None and other.type == field.type
    return pa.types.is_list(other.type) and other.type.value_type == field.type.value_type


def _may_be_long_decimal(leaf: pq.ColumnSchema) -> bool:
    is_decimal = leaf.logical_type.type == "DECIMAL"
    return is_decimal and (leaf.physical_type == "BYTE_ARRAY" or leaf.length > _DECIMAL_BYTES)


def _width_of(path: str, widths: dict[str, int]) -> int:
    """Returns the size of a value in memory, excluding strings; 0 if its column is not read."""
    return widths.get(path) or widths.get(path.partition(".")[0], 0)


def _width(stored: pa.DataType) -> int:
    """Returns the memory that a value takes up, including offsets and dictionary indices."""
    if pa.types.is_list(stored):
        return 4 + _width(stored.value_type)
    return (stored.bit_width + 7) // 8 if pa.types.is_primitive(stored) else 8


def _check_memory(needed: int, pointer: Pointer) -> None:
    if needed > MOST_MEMORY:
        raise Unusable(
            f"{pointer.file} needs {needed} bytes of memory, more than the limit of {MOST_MEMORY}"
        )


def _check_files(rows: pa.Table, pointer: Pointer) -> None:
    """Checks the columns that describe files and their sketches."""
    present = [f.name for f in (*FILE_FIELDS, *SKETCH_FIELDS) if f.name in rows.column_names]
    rows.select(present).validate(full=True)  # strings must be UTF-8, unlike bounds
    rows = rows.select([f.name for f in FILE_FIELDS])
    if any(column.null_count for column in rows.columns):
        raise Unusable(f"{pointer.file} has nulls in columns that cannot be null")
    if len(pc.unique(rows["path"])) != rows.num_rows:
        raise Unusable(f"{pointer.file} has several rows for the same path")


def _text_bytes(column: pa.ChunkedArray) -> int:
    """Returns the total length of a column's strings in bytes, counting each repetition."""
    total = 0
    for chunk in column.chunks:
        inner = chunk.flatten() if pa.types.is_list(chunk.type) else chunk
        if pa.types.is_dictionary(inner.type):
            lengths = pc.binary_length(inner.dictionary).take(inner.indices)
            total += pc.sum(lengths.cast(pa.int64())).as_py() or 0
    return total


def _warn(folder: TableFolder, failure: Exception) -> None:
    warn_once(folder, "cannot be used, so all files are read", str(failure))


def warn_once(folder: TableFolder, effect: str, reason: str) -> None:
    """Warns about an index, once per message. `reason` may contain text from the index."""
    if len(reason) > _LONGEST_REASON:
        reason = f"{reason[:_LONGEST_REASON]}..."
    text = f"The skipping index of {folder.root} {effect}: {on_one_line(reason)}"
    if text not in _warned:
        _warned.add(text)
        log.warning(
            "%s. To rebuild it, run REFRESH SKIPPING INDEX ON '%s' or, without Spark, the command "
            "'pyzorder index'.",
            text,
            folder.root,
        )
