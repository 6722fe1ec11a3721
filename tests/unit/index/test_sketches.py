"""Sketches are read as sql/FORMAT.md describes them. A damaged segment excludes no files."""

from __future__ import annotations

import logging
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyzorder.index import sketches
from pyzorder.index.entries import FileEntry
from pyzorder.index.pointers import IndexedColumn, SegmentRef
from pyzorder.index.snapshot_writer import publish
from pyzorder.index.snapshots import Snapshot, latest
from pyzorder.index.stores import LocalStore
from pyzorder.index.table_folder import TableFolder
from tests.support.sketches import decode, xxh64

STORE = LocalStore()
A = IndexedColumn(("a",), "long")

#: The example in FORMAT.md: of two files, file 1 has the hashes 3, 20, 21 and 200, truncated to 8
#: bits.
BLOCK = bytes.fromhex("041c00ffe2")
DIRECTORY = bytes.fromhex("02010105130101610622 6c6f6e6722 00 00 08 04 05 f44dc7dc")

#: The other example: file 1 has a list of the values 3 and 20.
LIST_BLOCK = bytes.fromhex("02 08 0300000000000000 08 1400000000000000 01 3f")
LIST_DIRECTORY = bytes.fromhex("0201 02 15 10 01 01 61 06 226c6f6e6722 00 01 a0b64846")

EXAMPLES = [(BLOCK, DIRECTORY), (LIST_BLOCK, LIST_DIRECTORY)]
SEGMENT = "_sketch-1-6ba7b810-9dad-11d1-80b4-00c04fd430c8"
HASHES = (3, 20, 21, 200)


def hash_of(prefix: int) -> int:
    """A 64-bit hash whose highest 8 bits are `prefix`."""
    return prefix << 56 | 12345


def snapshot_of(tmp_path: Path, segment: bytes, directory: bytes = DIRECTORY) -> Snapshot:
    """Publishes a snapshot of two files whose sketches are in a segment."""
    tmp_path.mkdir(exist_ok=True)
    folder = TableFolder(str(tmp_path))
    files = [FileEntry(name, 10, 1, 5, (), "") for name in ("x", "y")]
    publish(STORE, folder, lambda _: [A], entries=files)
    (tmp_path / "_zorder" / "_index" / SEGMENT).write_bytes(segment)
    found = latest(STORE, folder)
    assert found is not None
    ref = SegmentRef(SEGMENT, len(segment), len(segment) - len(directory), zlib.crc32(directory))
    rows = found.rows.drop_columns(["sketch_file", "sketch_number"])
    rows = rows.append_column("sketch_file", [[SEGMENT] * 2])
    rows = rows.append_column("sketch_number", pa.chunked_array([[0, 1]], pa.int32()))
    sketches._directories.clear()
    return Snapshot(replace(found.pointer, sketches=(ref,)), rows)


def ask(snapshot: Snapshot, *prefixes: int, column: IndexedColumn = A) -> list[bool]:
    hashes = [hash_of(prefix) for prefix in prefixes]
    return list(sketches.may_hold(STORE, snapshot, column, hashes, np.array([0, 1])))


def test_the_example(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, BLOCK + DIRECTORY)
    for prefix in range(256):
        assert ask(snapshot, prefix) == [True, prefix in HASHES]
    assert ask(snapshot, 1, 2, 200, 250) == [True, True]
    assert ask(snapshot, 1, 2, 250) == [True, False]
    assert ask(snapshot) == [True, False]
    assert ask(snapshot, *range(30, 99)) == [True, True]  # too many to be worthwhile


def test_the_example_of_a_list(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, LIST_BLOCK + LIST_DIRECTORY, LIST_DIRECTORY)
    for value in range(-50, 50):
        hashes = [xxh64(value.to_bytes(8, "little", signed=True)), 77]
        found = sketches.may_hold(STORE, snapshot, A, hashes, np.array([0, 1]))
        assert list(found) == [True, value in (3, 20)]
    assert list(sketches.may_hold(STORE, snapshot, A, [], np.array([0, 1]))) == [True, False]


@pytest.mark.parametrize(
    "column", [IndexedColumn(("b",), "long"), IndexedColumn(("a",), "integer")]
)
def test_other_columns(tmp_path: Path, column: IndexedColumn) -> None:
    assert ask(snapshot_of(tmp_path, BLOCK + DIRECTORY), 1, column=column) == [True, True]


@pytest.mark.parametrize(
    ("block", "directory", "at"), [(b, d, i) for b, d in EXAMPLES for i in range(len(b + d))]
)
def test_damaged(
    tmp_path: Path, block: bytes, directory: bytes, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A forged directory may have the right checksum. It can exclude files wrongly, but a
    lookup never raises an error."""
    data = bytearray(block + directory)
    data[at] ^= 0x55
    with caplog.at_level(logging.WARNING):
        assert ask(snapshot_of(tmp_path / "a", bytes(data), directory), 1) == [True, True]
    assert SEGMENT in caplog.text
    forged = bytes(data[len(block) :])
    assert len(ask(snapshot_of(tmp_path / "b", bytes(data), forged), 1)) == 2


@pytest.mark.parametrize(
    ("block", "directory", "length"), [(b, d, i) for b, d in EXAMPLES for i in range(len(b + d))]
)
def test_truncated(tmp_path: Path, block: bytes, directory: bytes, length: int) -> None:
    data = (block + directory)[:length]
    assert ask(snapshot_of(tmp_path, data, data[len(block) :]), 1) == [True, True]


def test_a_list_with_too_many_values(tmp_path: Path) -> None:
    for count, length in (5000, 0), (100, 6000):
        values = (number(length) + bytes(length)) * count
        block = number(count) + values + bytes.fromhex("01 3f")
        entry = LIST_DIRECTORY[5:-4] + zlib.crc32(block).to_bytes(4, "big")
        directory = b"\x02\x01\x02" + number(len(block)) + number(len(entry)) + entry
        assert ask(snapshot_of(tmp_path / str(count), block + directory, directory), 1) == [
            True,
            True,
        ]


def number(value: int) -> bytes:
    """A variable-length integer (varint)."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + number(value >> 7)


def test_one_sketch_for_two_files(tmp_path: Path) -> None:
    """If two files refer to the same sketch, only one of them can be excluded. Otherwise, a forged
    index could make a query decode the sketch any number of times."""
    snapshot = snapshot_of(tmp_path, BLOCK + DIRECTORY)
    rows = snapshot.rows.drop_columns(["sketch_number"])
    rows = rows.append_column("sketch_number", pa.chunked_array([[1, 1]], pa.int32()))
    assert ask(Snapshot(snapshot.pointer, rows), 1) == [False, True]


def test_a_sketch_that_is_longer_than_its_file(tmp_path: Path) -> None:
    """Otherwise, a lookup in a few small files could take minutes."""
    block = bytes([0x80, 0x10]) + b"\xff" * 2048
    checksum = zlib.crc32(block).to_bytes(4, "big")
    directory = DIRECTORY.replace(bytes.fromhex("05f44dc7dc"), bytes([0x82, 0x10]) + checksum)
    directory = directory.replace(bytes.fromhex("0105130101"), bytes.fromhex("01821014 0101"))
    snapshot = snapshot_of(tmp_path, block + directory, directory)
    assert ask(snapshot, 200) == [True, True]
    place = snapshot.rows.schema.get_field_index("size")
    sizes = snapshot.rows.set_column(place, "size", pa.chunked_array([[2048, 2048]], pa.int64()))
    assert ask(Snapshot(snapshot.pointer, sizes), 200) == [True, False]


def test_missing(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, BLOCK + DIRECTORY)
    (tmp_path / "_zorder" / "_index" / SEGMENT).unlink()
    assert ask(snapshot, 1) == [True, True]


def test_codes_with_too_many_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forged code may contain eight numbers per byte. The search stops at the limit. The file may
    then contain any value."""
    monkeypatch.setattr(sketches, "_MOST_VALUES", 100)
    assert not sketches.contains(bytes(12), 0, 0, [200])
    assert sketches.contains(bytes(13), 0, 0, [200])


@example(code=b"\xef", base=0, rice=5, wanted={3 * 32 + 15})  # its last number is incomplete
@given(st.binary(max_size=40), st.integers(0, 20), st.integers(0, 9), st.sets(st.integers(0, 2000)))
def test_codes(code: bytes, base: int, rice: int, wanted: set[int]) -> None:
    """A search in a code finds the same numbers as a decoder that reads one bit at a time."""
    asked = sorted(number + base for number in wanted)
    expected = bool(set(asked) & set(decode(code, base, rice)))
    assert sketches.contains(code, base, rice, asked) == expected
