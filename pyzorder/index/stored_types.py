"""The Arrow types of the columns in a snapshot's file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyzorder.index.pointers import IndexedColumn

#: The columns that describe a data file. Every snapshot has them.
FILE_FIELDS = [
    pa.field("path", pa.string(), nullable=False),
    pa.field("size", pa.int64(), nullable=False),
    pa.field("modification_time", pa.int64(), nullable=False),
    pa.field("num_records", pa.int64(), nullable=False),
    pa.field(
        "clustered_by", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False
    ),
    pa.field("read_settings", pa.string(), nullable=False),
]

#: The optional columns that state where a file's sketches are.
SKETCH_FIELDS = [pa.field("sketch_file", pa.string()), pa.field("sketch_number", pa.int32())]

FLAGS = ("nan_seen", "exact", "empty", "settings_dependent")

_STORED: dict[str, pa.DataType] = {
    "boolean": pa.bool_(), "byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(),
    "long": pa.int64(), "float": pa.float32(), "double": pa.float64(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}  # fmt: skip


def stored_type(data_type: Any) -> pa.DataType:
    """Returns the Arrow type that a snapshot's file uses for bounds of a Spark type."""
    name = str(data_type)
    if name.startswith("decimal"):
        precision, scale = re.findall(r"\d+", name)
        return pa.decimal128(int(precision), int(scale))
    if name.startswith("interval"):
        return pa.int32() if re.match("interval (year|month)", name) else pa.int64()
    if name.startswith("time("):
        return pa.time64("us")
    return _STORED.get(name, pa.string())


def fields_of(column: IndexedColumn) -> list[pa.Field]:
    """Returns the fields for one indexed column's statistics."""
    stored = stored_type(column.data_type)
    flags = FLAGS if column.is_float else FLAGS[1:]
    return [
        *(pa.field(f"{column.name}_{end}", stored) for end in ("minValue", "maxValue")),
        pa.field(f"{column.name}_num_nulls", pa.int64()),
        *(pa.field(f"{column.name}_{flag}", pa.bool_(), nullable=False) for flag in flags),
    ]


def schema_of(columns: Iterable[IndexedColumn]) -> pa.Schema:
    """Returns the schema of a snapshot's file."""
    own = [f for column in columns for f in fields_of(column)]
    return pa.schema(FILE_FIELDS + SKETCH_FIELDS + own)
