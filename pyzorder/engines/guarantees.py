"""Expresses what the index records about each file as PyArrow expressions.

A guarantee is an expression that is TRUE for every row of a file. PyArrow uses it to prove that no
row can match a filter. For a column with the bounds `low` and `high`, the guarantee is

    (c >= low OR c IS NULL) AND (c <= high OR c IS NULL)

The guarantee also holds if a file lacks the column, because the column's values are then null. A
file's guarantee omits a column whose bounds are not known to be valid. This is the case if the file
is unindexed or has changed, if the bounds are unknown or depend on settings, if a value may be NaN,
or if the engine reads the column as a different type than Spark does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyzorder.engines import failures
from pyzorder.engines.file_statistics import FileStatistics
from pyzorder.engines.tables import Table
from pyzorder.index.pointers import IndexedColumn

#: The maximum number of bounds in all guarantees together. Building one bound takes a few
#: microseconds.
MOST_BOUNDS = 20_000

_SIGNED = {"byte", "short", "integer", "long"}


def guarantees(
    table: Table, schema: pa.Schema, columns: Sequence[str] | None = None
) -> list[pc.Expression]:
    """Returns, for each file, an expression that is TRUE for all rows of the file.

    Args:
        schema: the columns, with the types that the engine uses.
        columns: the names of the columns whose bounds are to be included; None to choose the most
            useful columns.
    """
    statistics = FileStatistics(table)
    parts: list[list[pc.Expression]] = [[] for _ in table.files]
    _add_partitions(table, schema, parts)
    for number in chosen(table, statistics, schema, columns):
        _add_bounds(statistics, number, schema, parts)
    return [reduce(and_, own) if own else pc.scalar(True) for own in parts]


def chosen(
    table: Table, statistics: FileStatistics, schema: pa.Schema, columns: Sequence[str] | None
) -> list[int]:
    """Returns the columns whose bounds are included, as positions in the index."""
    taken = {column.name for column in table.partitions}
    able = {
        column.name: number
        for number, column in enumerate(statistics.columns)
        if column.path[0] not in taken and field_of(schema, column.path) is not None
    }
    if columns is not None:
        return _named(table, schema, able, [columns] if isinstance(columns, str) else columns)
    first = [able[name] for name in _clustering(table) if name in able]
    most = max(1, MOST_BOUNDS // max(1, len(table.files)))
    return list(dict.fromkeys([*first, *able.values()]))[: max(most, len(first))]


def _named(
    table: Table, schema: pa.Schema, able: dict[str, int], names: Sequence[str]
) -> list[int]:
    """Returns the named columns that have bounds.

    Raises:
        ZOrderError: one of the names is not a column of the table.
    """
    bounded = {name.lower(): number for name, number in able.items()}
    known = {field.name.lower() for field in schema}
    for name in names:
        lowered = name.lower()
        if not {lowered, lowered.partition(".")[0]} & (known | bounded.keys()):
            raise failures.no_column(table.location, name, schema.names)
    return [bounded[name.lower()] for name in dict.fromkeys(names) if name.lower() in bounded]


def _clustering(table: Table) -> tuple[str, ...]:
    """Returns the columns by which most files are clustered."""
    if table.snapshot is None:
        return ()
    found = Counter(tuple(names) for names in table.snapshot.rows["clustered_by"].to_pylist())
    ((names, _),) = found.most_common(1) or [((), 0)]
    return names


def field_of(schema: pa.Schema, path: Sequence[str]) -> pa.Field | None:
    """Returns the field at a path, or None if there is none or more than one. Case matters."""
    fields = [field for field in schema if field.name == path[0]]
    for name in path[1:]:
        if len(fields) != 1 or not pa.types.is_struct(fields[0].type):
            return None
        inner = fields[0].type
        fields = [inner.field(i) for i in range(inner.num_fields) if inner.field(i).name == name]
    return fields[0] if len(fields) == 1 else None


def _add_partitions(table: Table, schema: pa.Schema, parts: list[list[pc.Expression]]) -> None:
    for column in table.partitions:
        field = field_of(schema, [column.name])
        if field is None:
            continue
        reference = pc.field(column.name)
        known = {
            folder: reference.is_null()
            if value is None
            else reference == pa.scalar(value, column.arrow_type).cast(field.type)
            for folder, value in column.values.items()
        }
        for own, folder in zip(parts, table.folders, strict=True):
            own.append(known[folder])


def _add_bounds(
    statistics: FileStatistics, number: int, schema: pa.Schema, parts: list[list[pc.Expression]]
) -> None:
    column = statistics.columns[number]
    field = field_of(schema, column.path)
    assert field is not None
    reference = pc.field(*column.path)
    is_null = reference.is_null()
    found = statistics.of_column(number)
    may_be_nan = np.asarray(found[(f"q{number}",)].data)
    is_empty = np.asarray(found[(f"e{number}",)].data) & ~may_be_nan
    for place in np.flatnonzero(is_empty):
        parts[place].append(is_null)
    ends = bounds(statistics, column, field.type)
    if ends is None:
        return
    bounded = np.asarray(found[(f"b{number}",)].data) & ~may_be_nan
    for place in np.flatnonzero(bounded):
        low, high = ends[0][place], ends[1][place]
        if low.is_valid and high.is_valid:
            parts[place].append(((reference >= low) | is_null) & ((reference <= high) | is_null))


def bounds(
    statistics: FileStatistics, column: IndexedColumn, read: pa.DataType
) -> tuple[list[Any], list[Any]] | None:
    """Returns the bounds of each file, converted to the type that an engine reads.

    Returns None unless the engine reads the same values as Spark, in the same order.
    """
    if not is_read_alike(column.data_type, read):
        return None
    rows = statistics.portable.snapshot.rows
    try:
        low, high = (
            _texts(statistics.taken(rows[f"{column.name}_{end}"])).cast(read)
            for end in ("minValue", "maxValue")
        )
    except pa.ArrowException:  # a bound does not fit into the type
        return None
    return list(low), list(high)


def is_read_alike(data_type: Any, read: pa.DataType) -> bool:
    """Whether an engine that reads a column as the Arrow type `read` gets the same values as Spark.

    Spark reads INT96 and nanoseconds with less precision, unsigned integers and collated strings
    as other types, and narrow floats as wider ones. Each of these differences could move a value
    outside its bounds.
    """
    if data_type in _SIGNED:
        return pa.types.is_signed_integer(read)
    if data_type == "string":
        return pa.types.is_string(read) or pa.types.is_large_string(read)
    if data_type == "binary":
        return pa.types.is_binary(read) or pa.types.is_large_binary(read)
    if data_type == "timestamp":
        return pa.types.is_timestamp(read) and read.unit == "us" and read.tz is not None
    if str(data_type).startswith("decimal"):
        return str(read) == f"decimal128({str(data_type)[8:-1].replace(',', ', ')})"
    same = {
        "boolean": pa.bool_(), "float": pa.float32(), "double": pa.float64(),
        "date": pa.date32(), "timestamp_ntz": pa.timestamp("us"),
    }  # fmt: skip
    return data_type in same and bool(read == same[data_type])


def _texts(values: Any) -> Any:
    """Replaces strings that are not UTF-8 with null. Expressions must contain valid strings."""
    if values.type != pa.string():
        return values
    try:
        values.validate(full=True)
        return values
    except pa.ArrowInvalid:
        octets = values.cast(pa.binary()).to_pylist()
        return pa.array([_text(one) for one in octets], pa.string())


def _text(octets: bytes | None) -> str | None:
    try:
        return None if octets is None else octets.decode()
    except UnicodeDecodeError:
        return None
