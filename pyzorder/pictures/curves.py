"""Computes the order in which curves visit the cells of a square grid."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyzorder.interleave import interleave_long

Cells = npt.NDArray[np.int64]

NAMES = ("zorder", "hilbert", "linear")
"""The possible values of `spark.sql.zorder.optimize.curve`."""


def cells(curve: str, bits: int) -> tuple[Cells, Cells]:
    """Returns the columns and rows of the 4^bits cells, in the order of the curve.

    Raises:
        ValueError: there is no such curve, or `bits` is not between 1 and 8.
    """
    if curve not in NAMES:
        raise ValueError(f"there is no curve {curve!r}: use one of {', '.join(NAMES)}")
    if not 1 <= bits <= 8:
        raise ValueError(
            f"bits must be between 1 and 8, not {bits}: the grid has 2^bits columns and rows"
        )
    side = np.arange(1 << bits, dtype=np.int64)
    x, y = (grid.ravel() for grid in np.meshgrid(side, side, indexing="ij"))
    order = np.argsort(places(curve, x, y, bits))
    return x[order], y[order]


def places(curve: str, x: Cells, y: Cells, bits: int) -> Cells:
    """Returns each cell's position on the curve, starting at 0."""
    if curve == "linear":
        return (x << bits) | y
    if curve == "hilbert":
        x, y = hilbert_transpose(x, y, bits)
    return interleave_long([x, y], bits)


def hilbert_transpose(x: Cells, y: Cells, bits: int) -> tuple[Cells, Cells]:
    """Returns coordinates whose interleaved bits are the cell's position on the Hilbert curve.

    Mirrors the Scala class HilbertCurve (Skilling, "Programming the Hilbert curve", 2004).
    """
    x, y = x.copy(), y.copy()
    for bit in range(bits - 1, 0, -1):
        mask, below = 1 << bit, (1 << bit) - 1
        x = np.where(x & mask, x ^ below, x)
        swap = np.where(y & mask, 0, (x ^ y) & below)
        x = np.where(y & mask, x ^ below, x ^ swap)
        y ^= swap
    y ^= x
    flip = np.zeros_like(x)
    for bit in range(bits - 1, 0, -1):
        flip = np.where(y & (1 << bit), flip ^ ((1 << bit) - 1), flip)
    return x ^ flip, y ^ flip
