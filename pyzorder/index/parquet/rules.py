"""Decides how Spark reads Parquet columns, and converts their stored bounds to Spark's values.

The rules are those of the Scala classes ParquetRules and ParquetOrigin, with one exception: if the
footer is not sufficient for a column, the column is not scanned, and only its null count is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from pyzorder.index.entries import ColumnStatistics
from pyzorder.index.truncated_bounds import truncated

#: The first day of the Gregorian calendar, 1582-10-15, and the microsecond, at the start of 1900,
#: from which the hybrid and the proleptic calendars agree in every time zone. From these points on,
#: Spark reads dates and timestamps as stored, regardless of its settings.
_MODERN_DAY, _MODERN_MICRO = -141_427, -2_208_988_800_000_000

_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}

#: The types that Spark uses for unsigned integers, keyed by the integers' width in bits.
_UNSIGNED = {8: "short", 16: "integer", 32: "long", 64: "decimal(20,0)"}

#: Writers that compare string bounds as unsigned bytes. For a file without column orders, PyArrow
#: exposes bounds that other writers may have compared as signed bytes.
_ORDERED = re.compile(
    r"parquet-mr version (1\.[1-9][0-9]|[2-9])[.0-9]|parquet-cpp-arrow version|parquet-rs version|"
    r"DuckDB|Polars"
)


class Leaf(NamedTuple):
    """A column of a Parquet file.

    Attributes:
        physical: its physical type, such as INT32.
        logical: its annotation, parsed from PyArrow's JSON; `Type` is "None" if there is none.
        is_required: whether it is required and not part of a struct.
    """

    physical: str
    logical: Mapping[str, Any]
    is_required: bool

    @property
    def annotation(self) -> str:
        return str(self.logical["Type"])


class Origin(NamedTuple):
    """The properties of a file's writer that affect how Spark reads the values.

    Attributes:
        by_parquet_mr: whether the writer is parquet-mr. If so, the bounds are actual values from
            the file, except for types whose bounds may be truncated.
        is_ordered: whether the bounds of binary columns follow the order that Parquet defines.
        is_proleptic: whether the file records that its dates and timestamps are not rebased.
    """

    by_parquet_mr: bool
    is_ordered: bool
    is_proleptic: bool


def origin_of(created_by: str | None, keys: Mapping[bytes, bytes] | None) -> Origin:
    """Determines the properties of a file's writer from the file's metadata.

    As in Spark, the file uses the proleptic calendar if its metadata names Spark 3.0 or later and
    lacks the legacy key.
    """
    writer, keys = created_by or "", keys or {}
    version = keys.get(b"org.apache.spark.version", b"")
    is_proleptic = version >= b"3.0.0" and b"org.apache.spark.legacyDateTime" not in keys
    return Origin(writer.startswith("parquet-mr"), _ORDERED.match(writer) is not None, is_proleptic)


def is_readable(leaf: Leaf, data_type: str) -> bool:
    """Whether reading a column as this type either leaves all values unchanged or fails."""
    kind, annotation = leaf.physical, leaf.annotation
    if data_type in ("boolean", "float", "double"):
        return kind == data_type.upper()
    if data_type == "decimal(20,0)" and annotation == "Int":
        return kind == "INT64" and _unsigned(leaf) == data_type
    if data_type.startswith("decimal"):
        return annotation == "Decimal" and _holds(leaf, data_type)
    if data_type == "long" and kind == "INT64":
        return _is_signed(leaf)
    if data_type in _BITS:
        return kind == "INT32" and (_is_signed(leaf) or _unsigned(leaf) == data_type)
    if data_type.startswith("interval"):
        return annotation == "None" and kind == ("INT32" if _is_in_months(data_type) else "INT64")
    if data_type == "date":
        return annotation == "Date"
    if data_type.startswith("timestamp"):
        is_coarse = annotation == "Timestamp" and leaf.logical["timeUnit"] != "nanoseconds"
        return is_coarse and not (data_type == "timestamp_ntz" and _is_utc(leaf))
    if data_type.startswith("time("):
        return kind == "INT64" and annotation == "Time"
    if data_type == "binary" and kind == "FIXED_LEN_BYTE_ARRAY":
        return annotation == "None"
    if data_type in ("string", "binary"):
        return kind == "BYTE_ARRAY" and annotation in ("None", "String", "Enum", "JSON")
    return False


def statistics_of(
    bounds: Sequence[tuple[Any, Any]], leaf: Leaf, origin: Origin, data_type: str, nulls: int
) -> ColumnStatistics:
    """Returns the statistics of a column that has non-null values.

    Args:
        bounds: the stored minimum and maximum of each row group with non-null values.
        nulls: the number of nulls in the file.
    """
    try:
        found = _bounds(bounds, leaf, origin, data_type)
    except _Misread:
        return ColumnStatistics()
    if found is None:
        return ColumnStatistics(null_count=nulls)
    # Writers may truncate the bounds of strings. If the bounds are equal, they are not truncated.
    is_exact = origin.by_parquet_mr if leaf.physical != "BYTE_ARRAY" else found[0] == found[1]
    return ColumnStatistics(found, is_exact, nulls, nan_seen=False)


class _Misread(Exception):
    """Spark may fail to read some values, or read nulls or other values instead."""


def _bounds(
    groups: Sequence[tuple[Any, Any]], leaf: Leaf, origin: Origin, data_type: str
) -> tuple[Any, Any] | None:
    """Returns the bounds of a column, or None if they are unknown.

    The bounds of floats are not used, because writers differ in whether they include NaN and in the
    sign of zero. The bounds of unsigned integers and TIME are not used either.

    Raises:
        _Misread: not even the null count can be used.
    """
    if data_type == "boolean":
        return all(low for low, _ in groups), any(high for _, high in groups)
    if data_type in ("float", "double"):
        return None
    ends = min(low for low, _ in groups), max(high for _, high in groups)
    if data_type in ("string", "binary"):
        if leaf.physical != "BYTE_ARRAY" or not origin.is_ordered:
            return None
        return truncated(*ends, data_type == "string")
    if leaf.annotation == "Decimal":
        return _decimals(groups, leaf, origin)
    if data_type in ("date", "timestamp", "timestamp_ntz"):
        return _instants(ends, leaf, origin, data_type)
    if not _is_signed(leaf):
        return None
    limit = 1 << (_BITS.get(data_type, 32 if _is_in_months(data_type) else 64) - 1)
    if not -limit <= ends[0] <= ends[1] < limit:
        raise _Misread  # Spark would truncate the values to the narrower type
    return ends


def _instants(
    ends: tuple[int, int], leaf: Leaf, origin: Origin, data_type: str
) -> tuple[int, int] | None:
    """Returns the bounds of dates and timestamps, if Spark reads them as stored.

    Spark reads them as stored if the file records that they are not rebased, or if the smallest
    value is not before `_MODERN_DAY` or `_MODERN_MICRO`.
    """
    if data_type != "date" and _is_utc(leaf) != (data_type == "timestamp"):
        return None
    factor = 1000 if leaf.logical.get("timeUnit") == "milliseconds" else 1
    least, greatest = (end * factor for end in ends)
    if max(-least, greatest) >= 1 << 63:
        raise _Misread
    modern = _MODERN_DAY if data_type == "date" else _MODERN_MICRO
    return (least, greatest) if origin.is_proleptic or least >= modern else None


def _decimals(
    groups: Sequence[tuple[Any, Any]], leaf: Leaf, origin: Origin
) -> tuple[Decimal, Decimal]:
    """Returns the bounds of decimals, if those in the footer follow numerical order.

    The bounds of decimals that are stored as integers follow this order. So do the bounds of
    fixed-length binaries that parquet-mr wrote. Reading a value with more digits than its column
    declares yields null or fails.
    """
    ends = [end for group in groups for end in group]
    if leaf.physical == "FIXED_LEN_BYTE_ARRAY" and origin.by_parquet_mr and origin.is_ordered:
        ends = [int.from_bytes(end, "big", signed=True) for end in ends]
    elif leaf.physical not in ("INT32", "INT64"):
        raise _Misread
    if any(abs(end) >= 10 ** leaf.logical["precision"] for end in ends):
        raise _Misread
    return _scaled(min(ends), leaf.logical["scale"]), _scaled(max(ends), leaf.logical["scale"])


def _scaled(unscaled: int, scale: int) -> Decimal:
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _is_signed(leaf: Leaf) -> bool:
    if leaf.annotation == "Int":
        return bool(leaf.logical["isSigned"])
    return leaf.annotation == "None"


def _unsigned(leaf: Leaf) -> str:
    """Returns the type that Spark uses for an unsigned column; empty for other columns."""
    if leaf.annotation != "Int" or leaf.logical["isSigned"]:
        return ""
    return _UNSIGNED[leaf.logical["bitWidth"]]


def _is_utc(leaf: Leaf) -> bool:
    return bool(leaf.logical.get("isAdjustedToUTC"))


def _is_in_months(data_type: str) -> bool:
    return re.match("interval (year|month)", data_type) is not None


def _holds(leaf: Leaf, data_type: str) -> bool:
    """Whether a type has the same scale as a column, and enough digits for all of the column's
    values."""
    precision, scale = map(int, re.findall(r"\d+", data_type))
    return bool(leaf.logical["scale"] == scale and leaf.logical["precision"] <= precision)


# ---- types --------------------------------------------------------------------------------------


def spark_type(leaf: Leaf) -> str | None:
    """Returns Spark's default type for a column; None if that type cannot have statistics."""
    kind, annotation = leaf.physical, leaf.annotation
    if annotation == "Decimal":
        if leaf.logical["precision"] > 38:
            return None
        return f"decimal({leaf.logical['precision']},{leaf.logical['scale']})"
    if annotation == "Timestamp" and leaf.logical["timeUnit"] != "nanoseconds":
        return "timestamp" if _is_utc(leaf) else "timestamp_ntz"
    if annotation == "Int":
        bits = leaf.logical["bitWidth"]
        signed = next(name for name, width in _BITS.items() if width == bits)
        return signed if leaf.logical["isSigned"] else _UNSIGNED[bits]
    if annotation == "Date":
        return "date"
    if annotation in ("String", "Enum", "JSON"):
        return "string"
    return _PLAIN.get(kind) if annotation == "None" else None


_PLAIN = {
    "BOOLEAN": "boolean", "INT32": "integer", "INT64": "long", "FLOAT": "float",
    "DOUBLE": "double", "BYTE_ARRAY": "binary", "FIXED_LEN_BYTE_ARRAY": "binary",
}  # fmt: skip
