"""Reads sketch segments as FORMAT.md describes them, independently of the jar."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BUDGET = "spark.sql.zorder.index.sketchBudget"

_MASK = 2**64 - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)  # fmt: skip


def xxh64(data: bytes) -> int:
    """XXH64 with seed 0, implemented from its specification."""
    length, at = len(data), 0
    if length >= 32:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        while length - at >= 32:
            words = struct.unpack_from("<4Q", data, at)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += 32
        result = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            result = ((result ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        result = _P5
    result = (result + length) & _MASK
    while length - at >= 8:
        (word,) = struct.unpack_from("<Q", data, at)
        result = (_rotate(result ^ _round(0, word), 27) * _P1 + _P4) & _MASK
        at += 8
    if length - at >= 4:
        (half,) = struct.unpack_from("<I", data, at)
        result = (_rotate(result ^ half * _P1 & _MASK, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        result = _rotate(result ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    result = (result ^ result >> 33) * _P2 & _MASK
    result = (result ^ result >> 29) * _P3 & _MASK
    return result ^ result >> 32


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def decode(code: bytes, base: int, rice: int) -> Iterator[int]:
    """The numbers that a Rice code represents. An incomplete number at its end is ignored."""
    bits = "".join(f"{byte:08b}" for byte in code)
    while "0" in bits:
        quotient = bits.index("0")
        rest = bits[quotient + 1 : quotient + 1 + rice]
        if len(rest) < rice:
            return
        base += (quotient << rice) + int(rest or "0", 2)
        yield base
        base += 1
        bits = bits[quotient + 1 + rice :]


@dataclass
class Sketch:
    """The hashes of a column's values in a file, truncated to their highest `bits` bits."""

    data_type: Any
    bits: int
    hashes: set[int]

    def may_contain(self, data: bytes) -> bool:
        return xxh64(data) >> (64 - self.bits) in self.hashes


@dataclass
class ValueList:
    """The bytes of all values of a column in a file."""

    data_type: Any
    values: set[bytes]

    @property
    def hashes(self) -> set[int]:
        return {xxh64(value) for value in self.values}

    def may_contain(self, data: bytes) -> bool:
        return data in self.values


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def bytes(self, length: int | None = None) -> bytes:
        length = self.number() if length is None else length
        self.at += length
        return self.data[self.at - length : self.at]


def pointer(table: Path) -> dict[str, Any]:
    """The content of a table's newest pointer."""
    content = json.loads(max((table / "_zorder" / "_index").glob("_v*.json")).read_text())
    return dict(content)


def segments(table: Path) -> list[str]:
    """The names of the segments of a table's newest snapshot."""
    return [str(segment["file"]) for segment in pointer(table).get("sketches", [])]


def stored(table: Path) -> list[str]:
    """The names of all segments in a table's index."""
    return sorted(file.name for file in (table / "_zorder" / "_index").glob("_sketch-*"))


def read(table: Path, segment: dict[str, Any]) -> dict[str, list[Sketch | ValueList | None]]:
    """For each column of a segment, the sketch of each file."""
    data = (table / "_zorder" / "_index" / segment["file"]).read_bytes()
    assert len(data) == segment["length"]
    directory = data[segment["directory"] :]
    assert zlib.crc32(directory) == segment["crc32"]
    reader = _Reader(directory)
    files, columns = reader.number(), reader.number()
    found: dict[str, list[Sketch | ValueList | None]] = {}
    blocks = _Reader(data[: segment["directory"]])
    for _ in range(columns):
        kind = reader.number()
        end = blocks.at + reader.number()
        entry = _Reader(reader.bytes())
        name = ".".join(entry.bytes().decode() for _ in range(entry.number()))
        sketches: list[Sketch | ValueList | None]
        sketches = list({1: _hashes, 2: _lists}[kind](entry, files, blocks, end))
        assert entry.at == len(entry.data)
        found[name] = sketches
        assert blocks.at == end
    assert reader.at == len(directory) and blocks.at == segment["directory"]
    return found


def _lists(entry: _Reader, files: int, blocks: _Reader, end: int) -> Iterator[ValueList | None]:
    data_type = json.loads(entry.bytes())
    rices = [entry.number() for _ in range(files)]
    block = _Reader(blocks.bytes(end - blocks.at))
    assert zlib.crc32(block.data) == int.from_bytes(entry.bytes(4), "big")
    values = [block.bytes() for _ in range(block.number())]
    for rice in rices:
        ids = decode(block.bytes(), 0, rice - 1) if rice else None
        yield None if ids is None else ValueList(data_type, {values[i] for i in ids})
    assert block.at == len(block.data)


def _hashes(entry: _Reader, files: int, blocks: _Reader, end: int) -> list[Sketch | None]:
    data_type = json.loads(entry.bytes())
    bucket_bits = entry.number()
    sketches: list[Sketch | None] = []
    rices = []
    for _ in range(files):
        bits = entry.number()
        sketches.append(Sketch(data_type, bits, set()) if bits else None)
        rices.append(entry.number() if bits else 0)
    for bucket in range(2**bucket_bits):
        block = _Reader(blocks.bytes(entry.number()))
        assert zlib.crc32(block.data) == int.from_bytes(entry.bytes(4), "big")
        for sketch, rice in zip(sketches, rices, strict=True):
            if sketch is not None:
                base = bucket << (sketch.bits - bucket_bits)
                sketch.hashes |= set(decode(block.bytes(), base, rice))
        assert block.at == len(block.data)
    return sketches
