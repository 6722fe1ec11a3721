"""Looks up hashes in the sketches of files (sql/FORMAT.md, section "Sketches")."""

from __future__ import annotations

import json
import zlib
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
import xxhash

from pyzorder.index.pointers import IndexedColumn, SegmentRef, Unusable
from pyzorder.index.snapshot_statistics import Flags
from pyzorder.index.snapshots import Snapshot, warn_once
from pyzorder.index.stores import Store

#: The kinds of sketches that this module reads. Sketches of other kinds are ignored.
_HASHES, _VALUES = 1, 2

_HASH_BITS = 64
_MOST_BITS = 62
_MOST_BUCKET_BITS = 16

#: The maximum number of values in all lists of a column, and their maximum total size in bytes.
_MOST_LISTED = 1 << 12
_MOST_LISTED_BYTES = 1 << 19

#: The maximum number of hashes that a lookup decodes in one segment.
_MOST_VALUES = 1 << 22

#: A segment may have this many files. It may have more if the index has many files: up to 16 times
#: as many, because files that are no longer in the index remain in their segments.
_LEAST_FILES = 1 << 16

#: Sketches of up to this many bytes may be longer than their files.
_SHORT = 1 << 10

#: The maximum number of hashes in a lookup, as a multiple of the average gap between a file's
#: hashes. In a lookup of more hashes, one of them would probably match by chance.
_MOST_FALSE = 4

#: The most recently used directories, and their maximum total size in bytes.
_directories: OrderedDict[tuple[Hashable, str, SegmentRef], tuple[Store, bytes]] = OrderedDict()
_MOST_CACHED = 64 << 20


@dataclass(frozen=True)
class _HashColumn:
    """The part of a directory that describes a column whose sketches consist of hashes.

    Attributes:
        bits: for each file, the length of its hashes in bits; 0 if the file has no sketch.
        rices: for each file, the parameter of its Rice code.
        blocks: the start, length and CRC-32 of each block.
    """

    bucket_bits: int
    bits: npt.NDArray[np.uint8]
    rices: npt.NDArray[np.uint8]
    blocks: list[tuple[int, int, int]]


@dataclass(frozen=True)
class _ListColumn:
    """The part of a directory that describes a column whose sketches are lists of values.

    Attributes:
        rices: for each file, one more than the parameter of its Rice code; 0 if it has no list.
        block: the start, length and CRC-32 of the block.
    """

    rices: npt.NDArray[np.uint8]
    block: tuple[int, int, int]


def may_hold(
    store: Store,
    snapshot: Snapshot,
    column: IndexedColumn,
    hashes: Sequence[int],
    entries: npt.NDArray[np.int64],
) -> Flags:
    """Returns, for each entry, whether its file may contain a value with one of the hashes.

    The result is true for a file without a sketch of the column. If a segment cannot be read, the
    result is true for all of its files, and a warning names the segment.

    Args:
        column: the column, with the type in the snapshot.
        entries: the positions of the files' entries in the snapshot.
    """
    result = np.ones(len(entries), dtype=bool)
    if "sketch_file" not in snapshot.rows.column_names:
        return result
    names = snapshot.rows["sketch_file"].take(entries).to_pylist()
    numbers = snapshot.rows["sketch_number"].take(entries).fill_null(-1).to_numpy()
    sizes = snapshot.rows["size"].take(entries).to_numpy()
    wanted = sorted(set(hashes))
    for segment in dict.fromkeys(snapshot.pointer.sketches):
        places = np.flatnonzero([name == segment.file for name in names])
        # If several files refer to the same sketch, it is used only for the first one. Otherwise, a
        # small forged index could make a query decode one sketch any number of times.
        places = places[np.unique(numbers[places], return_index=True)[1]]
        if not len(places):
            continue
        try:
            reader = _Segment(store, f"{snapshot.pointer.folder.index}/{segment.file}", segment)
            most = max(_LEAST_FILES, 16 * snapshot.rows.num_rows)
            result[places] = reader.may_hold(column, wanted, numbers[places], sizes[places], most)
        except Exception as failure:  # a broken index must not make a query fail
            effect = f"is used without the sketches in {segment.file}"
            warn_once(snapshot.pointer.folder, effect, str(failure))
    return result


class _Segment:
    """Reads the directory of a segment, and the blocks that a lookup needs.

    The segment may come from an untrusted writer.
    """

    def __init__(self, store: Store, path: str, ref: SegmentRef) -> None:
        self._store = store
        self._path = path
        self._ref = ref

    def may_hold(
        self,
        column: IndexedColumn,
        hashes: Sequence[int],
        files: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
        most: int,
    ) -> Flags:
        """Returns, for each of the files (given by number), whether it may contain one of the
        hashes.

        Args:
            sizes: the sizes of the files in bytes. A sketch that is longer than its file is not
                used, so a lookup never takes longer than reading the files.
            most: the maximum number of files in the segment.
        """
        found = self._column(column, len(files) and int(files.max()) + 1, most)
        budget = _Budget(_MOST_VALUES)
        result = np.ones(len(files), dtype=bool)
        if found is None:
            return result
        if isinstance(found, _ListColumn):
            return self._may_list(found, hashes, files, sizes)
        known = np.flatnonzero((files >= 0) & (files < len(found.bits)))
        known = known[found.bits[files[known]] > 0]
        known = known[[len(hashes) <= _MOST_FALSE << int(found.rices[f]) for f in files[known]]]
        positions = np.cumsum(found.bits > 0) - 1
        left = [(place, int(files[place])) for place in known]
        result[known] = False
        for bucket, group in groupby(hashes, lambda h: h >> (_HASH_BITS - found.bucket_bits)):
            if not left or budget.left <= 0:
                break
            codes = self._codes(found, bucket)
            own, remaining = list(group), []
            for place, file in left:
                bits = int(found.bits[file])
                base = bucket << (bits - found.bucket_bits)
                targets = [h >> (_HASH_BITS - bits) for h in own]
                code = codes[positions[file]]
                if len(code) > max(sizes[place], _SHORT):
                    raise Unusable("a sketch is longer than its file")
                if contains(code, base, int(found.rices[file]), targets, budget):
                    result[place] = True
                else:
                    remaining.append((place, file))
            left = remaining
        if budget.left <= 0:  # the rest of the sketches were not read
            result[known] = True
        return result

    def _may_list(
        self,
        column: _ListColumn,
        hashes: Sequence[int],
        files: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
    ) -> Flags:
        """Like `may_hold`, for a column with lists of values."""
        block = _Bytes(self._read(*column.block))
        count = block.number()
        if count > _MOST_LISTED:
            raise Unusable("its lists have too many values")
        values = [block.take(block.number()) for _ in range(count)]
        if sum(map(len, values)) > _MOST_LISTED_BYTES:
            raise Unusable("the values of its lists are too long")
        wanted = set(hashes)
        ids = [i for i, value in enumerate(values) if xxhash.xxh64_intdigest(value) in wanted]
        codes = [block.take(block.number()) for _ in range(np.count_nonzero(column.rices))]
        positions = np.cumsum(column.rices > 0) - 1
        budget = _Budget(_MOST_VALUES)
        result = np.ones(len(files), dtype=bool)
        known = np.flatnonzero((files >= 0) & (files < len(column.rices)))
        for place in known[column.rices[files[known]] > 0]:
            file = files[place]
            code = codes[positions[file]]
            if len(code) > max(sizes[place], _SHORT):
                raise Unusable("a sketch is longer than its file")
            rice = int(column.rices[file]) - 1
            result[place] = bool(ids) and contains(code, 0, rice, ids, budget)
        return result

    def _codes(self, column: _HashColumn, bucket: int) -> list[bytes]:
        """Returns the encoded hashes of each file that has a sketch of the column."""
        start, length, crc32 = column.blocks[bucket]
        block = _Bytes(self._read(start, length, crc32))
        return [block.take(block.number()) for _ in range(np.count_nonzero(column.bits))]

    def _column(
        self, wanted: IndexedColumn, num_files: int, most: int
    ) -> _HashColumn | _ListColumn | None:
        """Returns the directory's description of a column, or None if the directory lacks the
        column."""
        directory = _Bytes(self._directory())
        files, columns = directory.number(), directory.number()
        if num_files > files:
            raise Unusable(f"it has {files} files, but the snapshot refers to more")
        if files > most:
            raise Unusable(f"it has {files} files, more than the limit of {most}")
        start = 0
        for _ in range(columns):
            kind, length = directory.number(), directory.number()
            entry = _Bytes(directory.take(directory.number()))
            if kind in (_HASHES, _VALUES) and _is_about(entry, wanted):
                parse = _hash_column if kind == _HASHES else _list_column
                return parse(entry, files, start, min(start + length, self._ref.directory))
            start += length
        return None

    def _directory(self) -> bytes:
        ref = self._ref
        key = (self._store.key, self._path, ref)
        if key not in _directories:
            data = self._read(ref.directory, ref.length - ref.directory, ref.crc32)
            _directories[key] = self._store, data
            while sum(len(kept) for _, kept in _directories.values()) > _MOST_CACHED:
                _directories.popitem(last=False)
            return data
        _directories.move_to_end(key)
        return _directories[key][1]

    def _read(self, start: int, length: int, crc32: int) -> bytes:
        data = self._store.read(self._path, start, length)
        if len(data) != length or zlib.crc32(data) != crc32:
            raise Unusable("a checksum is wrong")
        return data


@dataclass
class _Budget:
    """The number of values that a lookup may still decode."""

    left: int


def contains(
    code: bytes, base: int, rice: int, wanted: Sequence[int], budget: _Budget | None = None
) -> bool:
    """Returns whether a code contains one of the wanted numbers, which are in ascending order.

    If the budget is used up, the result is true.
    """
    budget = budget or _Budget(_MOST_VALUES)
    if budget.left <= 0:
        return True
    bits = bin(int.from_bytes(b"\x01" + code, "big"))[3:]
    at, known = 0, base - 1
    for number in wanted:
        while known < number:
            budget.left -= 1
            if budget.left <= 0:
                return True
            zero = bits.find("0", at)
            end = zero + 1 + rice
            if zero < 0 or end > len(bits):
                return False
            known += 1 + ((zero - at) << rice) + int(bits[zero + 1 : end] or "0", 2)
            at = end
        if known == number:
            return True
    return False


def _is_about(entry: _Bytes, wanted: IndexedColumn) -> bool:
    depth = entry.number()
    if depth != len(wanted.path):
        return False
    path = tuple(entry.take(entry.number()).decode() for _ in range(depth))
    return (path, entry.take(entry.number())) == (
        wanted.path,
        json.dumps(wanted.data_type, ensure_ascii=False).encode(),
    )


def _list_column(entry: _Bytes, files: int, start: int, end: int) -> _ListColumn:
    if files > entry.remaining:
        raise Unusable("its directory is damaged")
    rices = [entry.number() for _ in range(files)]
    if max(rices, default=0) > _MOST_BITS + 1:
        raise Unusable("its directory is damaged")
    block = start, end - start, int.from_bytes(entry.take(4), "big")
    return _ListColumn(np.array(rices, dtype=np.uint8), block)


def _hash_column(entry: _Bytes, files: int, start: int, end: int) -> _HashColumn:
    bucket_bits = entry.number()
    if bucket_bits > _MOST_BUCKET_BITS or files > entry.remaining:
        raise Unusable("its directory is damaged")
    bits, rices = np.zeros((2, files), dtype=np.uint8)
    for number in range(files):
        bits[number] = own = entry.number()
        if own:
            rices[number] = rice = entry.number()
            if not bucket_bits <= own <= _MOST_BITS or rice > _MOST_BITS:
                raise Unusable("its directory is damaged")
    blocks = []
    for _ in range(1 << bucket_bits):
        length = entry.number()
        blocks.append((start, length, int.from_bytes(entry.take(4), "big")))
        start += length
    if start > end:
        raise Unusable("its directory is damaged")
    return _HashColumn(bucket_bits, bits, rices, blocks)


class _Bytes:
    """Reads numbers and bytes, and raises Unusable if they would extend beyond the end of the
    data."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def remaining(self) -> int:
        return len(self._data) - self._at

    def number(self) -> int:
        """Reads a variable-length integer (varint)."""
        value = shift = 0
        while True:
            if self._at >= len(self._data) or shift > 28:
                raise Unusable("its directory is damaged")
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def take(self, length: int) -> bytes:
        if length > self.remaining:
            raise Unusable("its directory is damaged")
        self._at += length
        return self._data[self._at - length : self._at]
