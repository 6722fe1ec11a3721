"""Parses Thrift's compact protocol, in which Parquet stores footers and page headers.

Arrow's parser shortens numbers that are too large, skips fields of unexpected types, and lets a
later field replace an earlier one. This parser rejects all of that. Otherwise, a forged file could
mean one thing here and another in Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TRUE, _FALSE, _BYTE, _SHORT, _INT, _LONG, _DOUBLE, _BINARY = range(1, 9)
_LIST, _SET, _STRUCT = 9, 10, 12

BOOL, I16, I32, I64, DOUBLE, BINARY = "bool", "i16", "i32", "i64", "double", "binary"

_KINDS = {I16: _SHORT, I32: _INT, I64: _LONG, DOUBLE: _DOUBLE, BINARY: _BINARY}
_BITS = {_SHORT: 16, _INT: 32, _LONG: 64}

#: Structs and lists may be nested this deep. Parquet needs 7 levels.
_DEEPEST = 20

#: The type of a field: one of the names above, the fields of a struct by their numbers, or a list
#: that contains the type of its elements.
Type = str | Mapping[int, Any] | list[Any]


def parse(
    data: bytes, at: int, fields: Mapping[int, Type], until: int | None = None
) -> tuple[dict[int, Any], int]:
    """Parses the struct that begins at position `at`.

    Args:
        fields: the types of the struct's fields. Other fields are skipped.
        until: the number of the field after which to stop. By default, the whole struct is parsed.

    Returns:
        The known fields by their numbers, and the position after the struct. Integers, booleans,
        binaries and lists have Python's types, and structs are dicts like this one.

    Raises:
        ValueError or IndexError: this is not such a struct, or it contains maps or sets.
    """
    return _struct(data, at, fields, 0, until)


def _struct(
    data: bytes, at: int, fields: Mapping[int, Type], depth: int, until: int | None = None
) -> tuple[dict[int, Any], int]:
    if depth > _DEEPEST:
        raise ValueError("structs are nested too deeply")
    found: dict[int, Any] = {}
    number, seen = 0, set()
    while data[at]:
        step, kind = divmod(data[at], 16)
        at += 1
        if step:
            number += step
        else:
            number, at = _signed(data, at, 16)
        if not 0 < number < 1 << 15 or number in seen:
            raise ValueError(f"a field has the number {number}, or occurs twice")
        seen.add(number)
        field = fields.get(number)
        if kind in (_TRUE, _FALSE):
            value: Any = kind == _TRUE
            if field not in (None, BOOL):
                raise ValueError(f"field {number} has another type")
        else:
            value, at = _value(data, at, kind, field, depth)
        if field is not None:
            found[number] = value
        if number == until:
            return found, at
    return found, at + 1


def _value(data: bytes, at: int, kind: int, wanted: Type | None, depth: int) -> tuple[Any, int]:
    if wanted is not None and kind != _kind_of(wanted):
        raise ValueError(f"a field of type {kind} should have the type {wanted}")
    if kind in _BITS:
        return _signed(data, at, _BITS[kind])
    if kind == _BINARY:
        length, at = _varint(data, at)
        if length > len(data) - at:
            raise ValueError("a string is cut off")
        return data[at : at + length], at + length
    if kind == _STRUCT:
        return _struct(data, at, wanted if isinstance(wanted, Mapping) else {}, depth + 1)
    if kind == _LIST:
        return _list(data, at, wanted[0] if isinstance(wanted, list) else None, depth + 1)
    if kind in (_BYTE, _TRUE, _FALSE):
        return data[at], at + 1
    if kind == _DOUBLE:
        return data[at : at + 8], at + 8
    raise ValueError(f"a field has the type {kind}")


def _kind_of(wanted: Type) -> int:
    if isinstance(wanted, str):
        return _KINDS.get(wanted, 0)
    return _LIST if isinstance(wanted, list) else _STRUCT


def _list(data: bytes, at: int, wanted: Type | None, depth: int) -> tuple[list[Any], int]:
    length, kind = divmod(data[at], 16)
    at += 1
    if length == 15:
        length, at = _varint(data, at)
    if length > len(data) - at:
        raise ValueError("a list is cut off")  # each element takes at least one byte
    if wanted == BOOL and kind in (_TRUE, _FALSE):
        wanted = None
    values = []
    for _ in range(length):
        value, at = _value(data, at, kind, wanted, depth)
        values.append(value)
    return values, at


def _signed(data: bytes, at: int, bits: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    if number >= 1 << bits:
        raise ValueError(f"a number has more than {bits} bits")
    return (number >> 1) ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    number = 0
    for shift in range(0, 70, 7):
        number |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return number, at
    raise ValueError("a number has more than 64 bits")
