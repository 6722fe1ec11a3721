"""The parser accepts only what means the same to every parser of the compact protocol."""

from __future__ import annotations

import pytest

from pyzorder.index.parquet.thrift import BINARY, BOOL, I32, I64, Type, parse

FIELDS: dict[int, Type] = {1: I32, 2: BINARY, 3: {1: I64}, 4: [I32], 5: BOOL, 6: [{1: I32}]}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\0", {}),
        (b"\x15\x03\0", {1: -2}),
        (b"\x15\xff\xff\xff\xff\x0f\0", {1: -(2**31)}),
        (b"\x28\x02ab\0", {2: b"ab"}),
        (b"\x3c\x16\x02\0\0", {3: {1: 1}}),
        (b"\x49\x25\x02\x04\0", {4: [1, 2]}),
        (b"\x51\0", {5: True}),
        (b"\x52\0", {5: False}),
        (b"\x69\x1c\x15\x02\0\0", {6: [{1: 1}]}),
        (b"\x15\x02\x78\x01x\0", {1: 1}),  # field 8 is unknown
        (b"\x05\x02\x02\0", {1: 1}),  # the number 1 is written in full
    ],
)
def test_structs(data: bytes, expected: dict[int, object]) -> None:
    assert parse(b"x" + data + b"rest", 1, FIELDS) == (expected, 1 + len(data))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x15",
        b"\x16\x02\0",  # another type of integer
        b"\x11\0",  # a boolean instead of an integer
        b"\x55\x02\0",  # an integer instead of a boolean
        b"\x15\x02\x05\x02\x02\0",  # a field twice
        b"\x05\x82\x80\x08\x02\0",  # field 65537, which becomes field 1 in 16 bits
        b"\x05\0\x02\0",  # field 0
        b"\x15\x80\x80\x80\x80\x10\0",  # an integer of 33 bits
        b"\x49\x26\x02\x04\0",  # a list of other elements
        b"\x69\x15\x02\0",  # a list of integers instead of structs
        b"\x4a\x15\x02\0",  # a set instead of a list
        b"\x28\x05ab\0",  # a string that is cut off
        b"\x49\xf5\xff\xff\xff\x7f\x02\0",  # a list that is cut off
        b"\x7b\0\0",  # a map
        b"\x7c" + b"\x1c" * 100,  # many levels
        b"\x15" + b"\xff" * 20,
    ],
)
def test_other_data(data: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        parse(data, 0, FIELDS)


def test_until_a_field() -> None:
    assert parse(b"\x15\x02\x18\x01x\xff", 0, FIELDS, until=2) == ({1: 1, 2: b"x"}, 5)
