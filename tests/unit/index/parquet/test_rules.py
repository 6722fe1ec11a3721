"""Bounds in footers are used only if they provably enclose the values that Spark reads."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from pyzorder.index.entries import ColumnStatistics
from pyzorder.index.parquet.rules import (
    Leaf,
    Origin,
    is_readable,
    origin_of,
    spark_type,
    statistics_of,
)

SPARK = Origin(by_parquet_mr=True, is_ordered=True, is_proleptic=True)
ARROW = Origin(by_parquet_mr=False, is_ordered=True, is_proleptic=False)
OLD = Origin(by_parquet_mr=True, is_ordered=False, is_proleptic=False)

DAY, MICRO = -141_427, -2_208_988_800_000_000


def leaf(physical: str, kind: str = "None", **fields: Any) -> Leaf:
    return Leaf(physical, {"Type": kind, **fields}, is_required=False)


def integer(bits: int, signed: bool) -> Leaf:
    return leaf("INT64" if bits == 64 else "INT32", "Int", bitWidth=bits, isSigned=signed)


def timestamp(unit: str, utc: bool) -> Leaf:
    return leaf("INT64", "Timestamp", timeUnit=unit, isAdjustedToUTC=utc)


def decimal(physical: str, precision: int = 7, scale: int = 2) -> Leaf:
    return leaf(physical, "Decimal", precision=precision, scale=scale)


TEXT, DATE = leaf("BYTE_ARRAY", "String"), leaf("INT32", "Date")

#: For each column, the Spark types that leave its values unchanged. The first is the type that
#: Spark infers.
READABLE = [
    (leaf("BOOLEAN"), ["boolean"]),
    (leaf("INT32"), ["integer", "byte", "short", "long", "interval year to month"]),
    (integer(8, True), ["byte", "short", "integer", "long"]),
    (integer(32, True), ["integer", "byte", "short", "long"]),
    (integer(8, False), ["short"]),
    (integer(16, False), ["integer"]),
    (integer(32, False), ["long"]),
    (integer(64, False), ["decimal(20,0)"]),
    (leaf("INT64"), ["long", "interval day to second"]),
    (integer(64, True), ["long"]),
    (leaf("FLOAT"), ["float"]),
    (leaf("DOUBLE"), ["double"]),
    (DATE, ["date"]),
    (timestamp("microseconds", True), ["timestamp"]),
    (timestamp("milliseconds", True), ["timestamp"]),
    (timestamp("microseconds", False), ["timestamp_ntz", "timestamp"]),
    (decimal("INT32"), ["decimal(7,2)", "decimal(9,2)"]),
    (decimal("FIXED_LEN_BYTE_ARRAY"), ["decimal(7,2)", "decimal(9,2)"]),
    (TEXT, ["string", "binary"]),
    (leaf("BYTE_ARRAY"), ["binary", "string"]),
    (leaf("FIXED_LEN_BYTE_ARRAY"), ["binary"]),
    (timestamp("nanoseconds", True), []),
    (leaf("INT96"), []),
    (leaf("INT64", "Time", timeUnit="microseconds"), []),
    (leaf("BYTE_ARRAY", "BSON"), []),
    (leaf("FIXED_LEN_BYTE_ARRAY", "UUID"), []),
]  # fmt: skip

TYPES = sorted({t for _, types in READABLE for t in types} | {"decimal(6,2)", "decimal(7,3)"})


@pytest.mark.parametrize(("column", "types"), READABLE, ids=str)
def test_types(column: Leaf, types: list[str]) -> None:
    assert {t for t in TYPES if is_readable(column, t)} == set(types)
    assert spark_type(column) == (types[0] if types else None)


@pytest.mark.parametrize(
    ("created_by", "keys", "found"),
    [
        ("parquet-mr version 1.13.1 (build x)", {b"org.apache.spark.version": b"3.5.0"}, SPARK),
        ("parquet-cpp-arrow version 20.0.0", None, ARROW),
        ("DuckDB version v1.5.5 (build x)", None, ARROW),
        ("Polars (python) version 2.1.0", None, ARROW),
        ("parquet-rs version 55.0.0", None, ARROW),
        ("parquet-mr version 1.8.3 (build x)", {b"org.apache.spark.version": b"2.3.0"}, OLD),
        ("parquet-mr version 1.9.0", None, OLD),
        ("impala version 4.0", None, Origin(False, False, False)),
        (None, None, Origin(False, False, False)),
        (
            "parquet-mr version 1.12.3",
            {b"org.apache.spark.version": b"3.3.0", b"org.apache.spark.legacyDateTime": b""},
            Origin(True, True, False),
        ),
    ],
)
def test_origins(created_by: str | None, keys: dict[bytes, bytes] | None, found: Origin) -> None:
    assert origin_of(created_by, keys) == found


UNKNOWN = ColumnStatistics()

#: A column, its type, its writer, the bounds of its row groups, and its bounds in the index. The
#: bounds in the index are None if they are unknown, and UNKNOWN if the null count is also unknown.
BOUNDS: list[tuple[Leaf, str, Origin, list[tuple[Any, Any]], Any]] = [
    (leaf("INT32"), "integer", ARROW, [(3, 4), (-1, 2)], (-1, 4)),
    (leaf("INT32"), "byte", ARROW, [(-128, 127)], (-128, 127)),
    (leaf("INT32"), "byte", ARROW, [(-128, 128)], UNKNOWN),
    (leaf("INT32"), "short", ARROW, [(-32769, 0)], UNKNOWN),
    (leaf("INT64"), "interval day to second", ARROW, [(-(2**63), 1)], (-(2**63), 1)),
    (integer(32, False), "long", ARROW, [(-1, 1)], None),
    (integer(64, False), "decimal(20,0)", ARROW, [(0, 1)], None),
    (leaf("BOOLEAN"), "boolean", ARROW, [(False, True), (True, True)], (False, True)),
    (leaf("BOOLEAN"), "boolean", ARROW, [(True, True)], (True, True)),
    (leaf("DOUBLE"), "double", SPARK, [(1.0, 2.0)], None),
    (leaf("FLOAT"), "float", SPARK, [(1.0, 2.0)], None),
    (DATE, "date", ARROW, [(DAY, 9)], (DAY, 9)),
    (DATE, "date", ARROW, [(DAY - 1, 9)], None),
    (DATE, "date", SPARK, [(DAY - 1, 9)], (DAY - 1, 9)),
    (timestamp("microseconds", True), "timestamp", ARROW, [(MICRO, 9)], (MICRO, 9)),
    (timestamp("microseconds", True), "timestamp", ARROW, [(MICRO - 1, 9)], None),
    (timestamp("microseconds", True), "timestamp", SPARK, [(MICRO - 1, 9)], (MICRO - 1, 9)),
    (timestamp("milliseconds", True), "timestamp", ARROW, [(1, 2)], (1000, 2000)),
    (timestamp("milliseconds", True), "timestamp", SPARK, [(1, 2**62)], UNKNOWN),
    (timestamp("microseconds", False), "timestamp_ntz", ARROW, [(1, 2)], (1, 2)),
    (timestamp("microseconds", False), "timestamp", SPARK, [(1, 2)], None),
    (decimal("INT32"), "decimal(9,2)", ARROW, [(-150, 7)], (Decimal("-1.50"), Decimal("0.07"))),
    (decimal("INT32"), "decimal(7,2)", ARROW, [(0, 10**7)], UNKNOWN),
    (decimal("FIXED_LEN_BYTE_ARRAY"), "decimal(7,2)", SPARK, [(b"\xff\xff", b"\x00\x80")],
     (Decimal("-0.01"), Decimal("1.28"))),
    (decimal("FIXED_LEN_BYTE_ARRAY"), "decimal(7,2)", ARROW, [(b"\xff\xff", b"\x00\x80")], UNKNOWN),
    (decimal("FIXED_LEN_BYTE_ARRAY"), "decimal(7,2)", OLD, [(b"\xff\xff", b"\x00\x80")], UNKNOWN),
    (decimal("BYTE_ARRAY"), "decimal(7,2)", SPARK, [(b"\xff", b"\x01")], UNKNOWN),
    (TEXT, "string", ARROW, [(b"a", b"b"), (b"", b"\xc3\xa9")], (b"", b"\xc3\xa9")),
    (TEXT, "string", OLD, [(b"a", b"b")], None),
    (TEXT, "string", ARROW, [(b"a" * 300, b"b" * 300)], (b"a" * 256, b"b" * 255 + b"c")),
    (leaf("BYTE_ARRAY"), "binary", ARROW, [(b"\xff" * 300, b"\xff" * 300)], None),
    (leaf("FIXED_LEN_BYTE_ARRAY"), "binary", ARROW, [(b"a", b"b")], None),
]  # fmt: skip


@pytest.mark.parametrize(("column", "data_type", "origin", "groups", "found"), BOUNDS, ids=str)
def test_bounds(
    column: Leaf, data_type: str, origin: Origin, groups: list[tuple[Any, Any]], found: Any
) -> None:
    known = statistics_of(groups, column, origin, data_type, 5)
    if found is UNKNOWN:
        assert known == UNKNOWN
    else:
        assert (known.bounds, known.null_count, known.empty) == (found, 5, False)
        assert not known.settings_dependent


def test_exact_bounds_occur_in_the_file() -> None:
    def exact(column: Leaf, data_type: str, origin: Origin, low: Any, high: Any) -> bool:
        return statistics_of([(low, high)], column, origin, data_type, 0).exact

    assert exact(leaf("INT64"), "long", SPARK, 1, 2)
    assert not exact(leaf("INT64"), "long", ARROW, 1, 2)
    assert exact(TEXT, "string", ARROW, b"a", b"a")
    assert not exact(TEXT, "string", SPARK, b"a", b"b")
    assert not exact(TEXT, "string", SPARK, b"a" * 300, b"a" * 300)
