"""Hypothesis strategies for values of every type, and functions that convert these values for
Spark. The values are in Catalyst's internal representation."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    digits = st.one_of(
        st.integers(-(10**precision) + 1, 10**precision - 1),
        st.integers(-1000, 1000).filter(lambda n: abs(n) < 10**precision),
    )
    return digits.map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


_MICROS = st.integers(-62135596800000000, 253402300799999999)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

#: The strategy for the values of each type.
BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "tinyint": _integers(8),
    "smallint": _integers(16),
    "int": _integers(32),
    "bigint": _integers(64),
    "float": st.floats(width=32),
    "double": st.floats(),
    "decimal(1,0)": _decimals(1, 0),
    "decimal(7,2)": _decimals(7, 2),
    "decimal(18,6)": _decimals(18, 6),
    "decimal(19,0)": _decimals(19, 0),
    "decimal(38,10)": _decimals(38, 10),
    "date": st.integers(-719162, 2932896),
    "timestamp": _MICROS,
    "timestamp_ntz": _MICROS,
    "time": st.integers(0, 86399999999).map(lambda micros: micros * 1000),
    "interval month": _integers(32),
    "interval second": _integers(64),
    "string": st.one_of(_TEXT, _TEXT.map(lambda t: "commonprefix" + t)),
    "binary": st.one_of(st.binary(max_size=12), st.binary(max_size=3).map(lambda b: bytes(8) + b)),
}

#: For each type, the PyArrow type that is used to pass its values to Spark, and Spark's name for
#: the type.
TRANSPORT: dict[str, tuple[pa.DataType, str]] = {
    "boolean": (pa.bool_(), "boolean"),
    "tinyint": (pa.int8(), "tinyint"),
    "smallint": (pa.int16(), "smallint"),
    "int": (pa.int32(), "int"),
    "bigint": (pa.int64(), "bigint"),
    "float": (pa.float32(), "float"),
    "double": (pa.float64(), "double"),
    "date": (pa.int32(), "date"),
    "timestamp": (pa.int64(), "timestamp"),
    "timestamp_ntz": (pa.int64(), "timestamp_ntz"),
    "time": (pa.int64(), "time(6)"),
    "interval month": (pa.int32(), "interval year to month"),
    "interval second": (pa.int64(), "interval day to second"),
    "string": (pa.string(), "string"),
    "binary": (pa.binary(), "binary"),
}
LOGICAL = {
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "time": pa.time64("us"),
}


def arrow(values: list[Any], data_type: str) -> pa.Array:
    """Converts the values to a PyArrow array."""
    if data_type.startswith("decimal"):
        precision, scale = map(int, data_type[8:-1].split(","))
        return pa.array(values, pa.decimal128(precision, scale))
    if data_type == "time":
        values = [None if v is None else v // 1000 for v in values]
    array = pa.array(values, TRANSPORT[data_type][0])
    return array.cast(LOGICAL[data_type]) if data_type in LOGICAL else array


def sql_type(data_type: str) -> str:
    """The type's name in SQL."""
    return data_type if data_type.startswith("decimal") else TRANSPORT[data_type][1]
