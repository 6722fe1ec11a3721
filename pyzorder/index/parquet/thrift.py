"""Parses Thrift's compact protocol, in which Parquet stores footers and page headers."""

from __future__ import annotations

from typing import Any

_TRUE, _FALSE, _BYTE, _SHORT, _INT, _LONG, _DOUBLE, _BINARY = range(1, 9)
_LIST, _SET, _STRUCT = 9, 10, 12

#: Structs and lists may be nested this deep. Parquet needs 7 levels.
_DEEPEST = 20


def parse(data: bytes, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Parses the struct that begins at position `at`.

    Returns:
        The fields by their numbers, and the position after the struct. Integers, booleans, binaries
        and lists have Python's types, and structs are dicts like this one.

    Raises:
        ValueError or IndexError: this is not a struct, or it contains maps.
    """
    if depth > _DEEPEST:
        raise ValueError("structs are nested too deeply")
    found: dict[int, Any] = {}
    number = 0
    while data[at]:
        step, kind = divmod(data[at], 16)
        at += 1
        if step:
            number += step
        else:
            number, at = _signed(data, at)
        if kind in (_TRUE, _FALSE):
            found[number] = kind == _TRUE
        else:
            found[number], at = _value(data, at, kind, depth)
    return found, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (_INT, _LONG, _SHORT):
        number, at = _signed(data, at)
        if kind != _LONG and not -1 << 31 <= number < 1 << 31:
            raise ValueError("a number has more than 32 bits")
        return number, at
    if kind == _BINARY:
        length, at = _varint(data, at)
        if at + length > len(data):
            raise ValueError("a string is cut off")
        return data[at : at + length], at + length
    if kind == _STRUCT:
        return parse(data, at, depth + 1)
    if kind in (_LIST, _SET):
        return _list(data, at, depth + 1)
    if kind in (_BYTE, _TRUE, _FALSE):
        return data[at], at + 1
    if kind == _DOUBLE:
        return data[at : at + 8], at + 8
    raise ValueError(f"a field has the type {kind}")


def _list(data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    length, kind = divmod(data[at], 16)
    at += 1
    if length == 15:
        length, at = _varint(data, at)
    if length > len(data) - at:
        raise ValueError("a list is cut off")  # each element takes at least one byte
    values = []
    for _ in range(length):
        value, at = _value(data, at, kind, depth)
        values.append(value)
    return values, at


def _signed(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
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
