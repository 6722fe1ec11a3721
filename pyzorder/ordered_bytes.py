"""Encodes values as bits and bytes that, compared as unsigned numbers, sort like the values.

This is the readable reference implementation of io.pyzorder.expressions.OrderedBytes, and is used
where there is no JVM. The format is specified in sql/FORMAT.md ("z-values"). The module does not
depend on Spark:

- A column is a NumPy array (masked where it has nulls) or a list with None for null.
- A type is its SQL name, such as "int" or "decimal(10,2)".
- Values use Spark's internal representation: dates are days, timestamps and day-time intervals are
  microseconds, times are nanoseconds and year-month intervals are months. All of these are
  integers. Values of other types are bool, int, float, decimal.Decimal, str or bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

Column = Sequence[Any] | npt.NDArray[Any]
Longs = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]

SIGN_BIT = np.uint64(1 << 63)

#: For decimals of more than 18 digits, the number of leading bits of the magnitude that are kept.
#: The first of these bits is always 1 and is not stored.
MANTISSA_BITS = 57

#: Width in bits of each fixed-width type. A time is the number of nanoseconds since midnight,
#: which fits into 47 bits.
BITS = {
    "boolean": 1, "tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "float": 32, "double": 64,
    "date": 32, "timestamp": 64, "timestamp_ntz": 64, "time": 47,
    "interval month": 32, "interval second": 64,
}  # fmt: skip

#: Types without a sign bit.
UNSIGNED = {"boolean", "time"}

#: Aliases of the types above and of string.
ALIASES = {
    "bool": "boolean", "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint",
    "timestamp_ltz": "timestamp", "varchar": "string", "char": "string",
}  # fmt: skip

_EXACT = Context(prec=80)


def supports(data_type: str) -> bool:
    """Whether this module can order and encode values of `data_type`.

    It supports every atomic type except collated strings, whose sort keys need ICU.
    """
    return is_long(data_type) or _base(data_type) in {"string", "binary", "decimal"}


def of(values: Column, data_type: str) -> Bits:
    """Returns 64 ordered bits per value, left-aligned, to be compared as unsigned integers.

    Null is 0. A value whose bits would be 0 is encoded as 1, so that only null is 0. A greater
    value never has smaller bits, but different strings, different binaries, and different decimals
    of more than 18 digits may have the same bits.
    """
    nulls = null_mask(values)
    if is_long(data_type):
        bits = _left_aligned(long_of(values, data_type), data_type)
    elif _base(data_type) == "decimal":
        scale = _decimal(data_type)[1]
        wide = [0 if v is None else _wide_decimal_bits(_unscaled(v, scale)) for v in _list(values)]
        bits = np.array(wide, dtype=np.uint64)
    else:
        starts = [(w or b"")[:8].ljust(8, b"\0") for w in whole_of(values, data_type)]
        bits = np.frombuffer(b"".join(starts), dtype=">u8").astype(np.uint64)
    bits = np.where(bits == 0, np.uint64(1), bits)
    bits[nulls] = 0
    return bits


def whole_of(values: Column, data_type: str) -> list[bytes | None]:
    """Encodes each value in full.

    Compared lexicographically as unsigned bytes, the encodings sort like the values.

    The width is fixed, except that strings (as UTF-8) and binary values are returned unchanged.
    Null is None.
    """
    if is_long(data_type):
        bits = _left_aligned(long_of(values, data_type), data_type).astype(">u8")
        width = (_bits(data_type) + 7) // 8
        octets = bits.view(np.uint8).reshape(-1, 8)[:, :width]
        wholes: list[bytes | None] = [row.tobytes() for row in octets]
        return [None if null else w for w, null in zip(wholes, null_mask(values), strict=True)]
    base = _base(data_type)
    if base == "decimal":
        precision, scale = _decimal(data_type)
        return [None if v is None else _wide_decimal_bytes(_unscaled(v, scale), precision)
                for v in _list(values)]  # fmt: skip
    if base == "string":
        return [None if v is None else v.encode() for v in _list(values)]
    if base == "binary":
        return [None if v is None else bytes(v) for v in _list(values)]
    raise TypeError(f"values of type {data_type} have no ordered bytes")


def is_long(data_type: str) -> bool:
    """Whether values of `data_type` fit into 64 bits, so `long_of` encodes them in full."""
    base = _base(data_type)
    return base in BITS or (base == "decimal" and _decimal(data_type)[0] <= 18)


def long_of(values: Column, data_type: str) -> Longs:
    """Returns longs that, compared as signed numbers, sort like the values.

    Two longs are equal only if the values are equal.

    -0.0 equals 0.0, and all NaNs equal each other and exceed +infinity. The long for null is
    arbitrary.

    Args:
        data_type: a type for which `is_long` is true.
    """
    base = _base(data_type)
    if base == "decimal":
        scale = _decimal(data_type)[1]
        unscaled = [0 if v is None else _unscaled(v, scale) for v in _list(values)]
        return np.array(unscaled, dtype=np.int64)
    if base == "float":
        return long_of_float(_filled(values, np.float32))
    if base == "double":
        return long_of_double(_filled(values, np.float64))
    return _filled(values, np.int64)


def long_of_float(values: npt.NDArray[np.float32]) -> Longs:
    """`long_of` for floats. Returns their bits, but reverses the order of negative floats."""
    canonical = np.where(np.isnan(values), np.float32(np.nan), values + np.float32(0))
    bits = canonical.astype(np.float32).view(np.int32)
    return np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits).astype(np.int64)


def long_of_double(values: npt.NDArray[np.float64]) -> Longs:
    """`long_of` for doubles. Returns their bits, but reverses the order of negative doubles."""
    canonical = np.where(np.isnan(values), np.float64(np.nan), values + 0.0)
    bits = canonical.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)


def null_mask(values: Column) -> npt.NDArray[np.bool_]:
    """Returns True for each value that is null."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return np.ma.getmaskarray(values)
    return np.array([v is None for v in _list(values)], dtype=np.bool_)


def _left_aligned(longs: Longs, data_type: str) -> Bits:
    shifted = longs.astype(np.uint64) << np.uint64(64 - _bits(data_type))
    return shifted if _base(data_type) in UNSIGNED else shifted ^ SIGN_BIT


def _wide_decimal_bits(unscaled: int) -> int:
    magnitude = abs(unscaled)
    length = magnitude.bit_length()
    leading = (magnitude << MANTISSA_BITS) >> length
    tail = leading & ((1 << (MANTISSA_BITS - 1)) - 1)
    bits = (1 << 63) | (length << (MANTISSA_BITS - 1)) | tail
    return bits if unscaled >= 0 else bits ^ ((1 << 64) - 1)


def _wide_decimal_bytes(unscaled: int, precision: int) -> bytes:
    width = _decimal_width(precision)
    return (unscaled + (1 << (8 * width - 1))).to_bytes(width, "big")


def _decimal_width(precision: int) -> int:
    """Returns the number of bytes that the sign and all digits of a decimal need."""
    return int((10**precision - 1).bit_length()) // 8 + 1


def _unscaled(value: Decimal, scale: int) -> int:
    shifted = Decimal(value).scaleb(scale, _EXACT)
    if shifted != shifted.to_integral_value():
        raise ValueError(f"{value} has more than {scale} digits after the decimal point")
    return int(shifted)


def _bits(data_type: str) -> int:
    if _base(data_type) == "decimal":
        return 8 * _decimal_width(_decimal(data_type)[0])
    return BITS[_base(data_type)]


def _base(data_type: str) -> str:
    name = data_type.lower().strip()
    if name.startswith("interval"):
        return "interval month" if re.search("year|month", name) else "interval second"
    name = re.sub(r"\(.*\)$", "", name).strip()
    return ALIASES.get(name, name)


def _decimal(data_type: str) -> tuple[int, int]:
    found = re.search(r"\((\d+)(?:,\s*(\d+))?\)", data_type)
    return (10, 0) if found is None else (int(found[1]), int(found[2] or 0))


def _filled(values: Column, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Returns the values as an array of `dtype`. Nulls become 0."""
    if isinstance(values, np.ma.MaskedArray):
        return np.asarray(values.filled(0)).astype(dtype)
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.astype(dtype)
    return np.array([0 if v is None else v for v in values], dtype=dtype)


def _list(values: Column) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)
