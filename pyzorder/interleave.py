"""Interleaves the bits of several columns into one z-value, starting with the first column.

This is the readable reference implementation of io.pyzorder.expressions.InterleaveBits, and is
used where there is no JVM. The format is specified in sql/FORMAT.md ("z-values").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

#: Maximum length of a z-value in bytes. Longer z-values are truncated, for example those of more
#: than 128 columns with 64 bits each.
MAX_BYTES = 1024

#: Number of bits in a z-value that is a non-negative long.
LONG_BITS = 63


def interleave_bytes(columns: Sequence[npt.NDArray[np.uint64]]) -> npt.NDArray[np.uint8]:
    """Interleaves 64 bits of each column into z-values of 8 bytes per column, at most `MAX_BYTES`.

    The highest bit comes from the first column, the next one from the second column, and so on.

    Args:
        columns: one array per column, all of the same length.

    Returns:
        One row of bytes per z-value.
    """
    octets = [np.ascontiguousarray(c, dtype=">u8").view(np.uint8).reshape(-1, 8) for c in columns]
    return _interleave_octets(octets)


def interleave_byte_strings(columns: Sequence[Sequence[bytes | None]]) -> list[bytes]:
    """Interleaves byte strings, each padded with zeros on the right to the length of the longest
    string in its row.

    A null counts as an empty string. A z-value is truncated to `MAX_BYTES`.
    """
    return [_one_row([value or b"" for value in row]) for row in zip(*columns, strict=True)]


def interleave_long(ids: Sequence[npt.NDArray[Any]], bits_each: int) -> npt.NDArray[np.int64]:
    """Interleaves ids between 0 and 2^bits_each - 1 into one non-negative long per row."""
    n = len(ids)
    z = np.zeros(len(ids[0]), dtype=np.int64)
    for column in ids:
        z = (z << 1) | spread(column, n, bits_each)
    return z


def bits_per_column(n: int) -> int:
    """Bits per column in a long z-value of `n` columns: 63 // n, but at most 31.

    Raises:
        ValueError: `n` is not between 1 and 63.
    """
    if not 1 <= n <= LONG_BITS:
        raise ValueError(f"a z-value of {LONG_BITS} bits has 1 to {LONG_BITS} columns, not {n}")
    return min(31, LONG_BITS // n)


def spread(ids: npt.NDArray[Any], n: int, bits: int) -> npt.NDArray[np.int64]:
    """Spreads the lowest `bits` bits of each id `n` places apart, 16 bits per table lookup."""
    wide = np.asarray(ids, dtype=np.int64)
    table = _spread_table(n)
    spread_ids = table[wide & 0xFFFF]
    if bits > 16:
        spread_ids = spread_ids | (table[wide >> 16 & 0xFFFF] << (16 * n))
    return spread_ids


def stretched(ids: npt.NDArray[Any], id_count: int, bits: int) -> npt.NDArray[np.int64]:
    """Scales range ids to use all `bits` bits: floor(id * 2^bits / id_count)."""
    return (np.asarray(ids, dtype=np.int64) << bits) // id_count


@lru_cache(maxsize=LONG_BITS)
def _spread_table(n: int) -> npt.NDArray[np.int64]:
    numbers = np.arange(1 << 16, dtype=np.int64)
    table = np.zeros(1 << 16, dtype=np.int64)
    for bit in range(16):
        if bit * n < LONG_BITS:
            table |= (numbers >> bit & 1) << (bit * n)
    return table


def _interleave_octets(columns: Sequence[npt.NDArray[np.uint8]]) -> npt.NDArray[np.uint8]:
    """Interleaves columns of the same width, each with one row of bytes per value."""
    bits = np.stack([np.unpackbits(column, axis=1) for column in columns], axis=2)
    return np.packbits(bits.reshape(len(bits), -1), axis=1)[:, :MAX_BYTES]


def _one_row(row: list[bytes]) -> bytes:
    longest = max(map(len, row))
    if longest == 0:
        return b""
    octets = [np.frombuffer(v.ljust(longest, b"\0"), dtype=np.uint8)[np.newaxis] for v in row]
    return _interleave_octets(octets)[0].tobytes()
