"""Hypothesis draws of every type's values, in Spark's internal form."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

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

#: By type: what its values are drawn from.
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
