"""Cuts the space of range ids into cells with about the same number of rows, one cell per file.

The nodes of the tree are the same as those that io.pyzorder.layout.cells.KdTreeBuilder creates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]

#: Maximum share by which a cut may overfill files. If a cut exceeds it, other columns are tried.
TOLERATED = 0.25

#: Columns whose spread is at least this share of the widest column's spread are treated as equally
#: wide. Equally wide columns are tried in the given order.
ABOUT_AS_WIDE = 0.9

#: Placeholder for the number of slabs of a grid's last column, which gets as many slabs as the
#: number of files allows.
REST = 0

#: The maximum ratio of the number of files that lookups open with a tolerated tree to the number
#: that they open with the best tree. Among the tolerated trees, grids are preferred to repeated
#: halving, and grids that favor the first columns are preferred to other grids.
TOLERATED_SHARE = 1.05

#: Relative accuracy of the spreads, which are estimated from a sample.
ABOUT = 0.02


class KdTree(NamedTuple):
    """A tree whose leaves contain exactly `leaf_count` files, numbered from left to right.

    Nodes are stored in preorder. An inner node splits `column` at the id `cut`. Its left subtree
    follows it directly, and its right subtree starts at the node `right`.

    A leaf has -1 in `column`, its first file in `cut`, and its number of files in `right`. A leaf
    has several files if a single combination of ids has too many rows for one file. The rows of
    such a leaf are distributed evenly over its files.
    """

    column: npt.NDArray[np.int32]
    cut: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    leaf_count: int

    def leaves(self, ids: Sequence[Ids], turns: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Returns the number of each row's file, from 0 to `leaf_count` - 1.

        Args:
            ids: for each column, the range id of each row.
            turns: non-negative numbers that vary between rows. If a leaf has several files, they
                distribute its rows over these files.
        """
        rows = np.stack(ids, axis=1) if ids else np.zeros((len(turns), 0), dtype=np.int32)
        node = np.zeros(len(turns), dtype=np.int32)
        inner = self.column[node] >= 0
        while inner.any():
            at = node[inner]
            is_left = rows[inner, self.column[at]] < self.cut[at]
            node[inner] = np.where(is_left, at + 1, self.right[at])
            inner = self.column[node] >= 0
        return (self.cut[node] + turns % self.right[node]).astype(np.int32)


def build(ids: Sequence[Ids], leaves: int) -> KdTree:
    """Builds the tree from a sample of rows.

    The cells form a grid, unless lookups open noticeably fewer files with repeated halving. This
    can happen if frequent values prevent an even grid.

    Args:
        ids: for each column, the range id of each sampled row; 0 for null.
        leaves: number of files.

    Raises:
        ValueError: `leaves` is less than 1.
    """
    if leaves < 1:
        raise ValueError(f"a k-d tree has at least one leaf, not {leaves}")
    if leaves == 1 or not len(ids) or not len(ids[0]):
        return _tree([(-1, 0, leaves)], leaves)
    builders = [_Builder(ids, in_grid) for in_grid in ([True, False] if len(ids) > 1 else [False])]
    trees = [builder.build(leaves) for builder in builders]
    least = min(builder.width for builder in builders)
    enough = (builder.width <= least * TOLERATED_SHARE for builder in builders)
    return next(tree for tree, is_enough in zip(trees, enough, strict=True) if is_enough)


def grid(leaves: int, spreads: Sequence[float]) -> list[int]:
    """Returns the number of slabs to cut each column into so that the cells form a grid.

    The number is 1 for columns that are not cut, and `REST` for the last column that is cut. See
    io.pyzorder.layout.cells.Grid for the reasons.
    """
    ideal = _even(leaves, spreads)
    cut = [c for c in range(len(spreads)) if ideal[c] > 1]
    if not cut:
        return [1] * len(spreads)
    candidates = _near(leaves, [ideal[c] for c in cut])

    def lengths(slabs: list[float]) -> list[float]:
        return [spreads[c] / count for c, count in zip(cut, slabs, strict=True)]

    least = min(sum(lengths(slabs)) for slabs in candidates)
    tolerated = [s for s in candidates if sum(lengths(s)) <= least * TOLERATED_SHARE]
    in_order = [s for s in tolerated if max(lengths(s)) <= lengths(s)[-1] * (1 + ABOUT)]
    chosen: list[float] = min(
        in_order or tolerated,
        key=lambda s: sum(n / (c + 1) for n, c in zip(lengths(s), cut, strict=True)),
    )
    best = dict(zip(cut, chosen, strict=True))
    return [REST if c == cut[-1] else int(best.get(c, 1)) for c in range(len(spreads))]


def _even(leaves: int, spreads: Sequence[float]) -> list[float]:
    """Returns fractional slab counts that give cells the same length in all columns.

    Columns whose spread is less than the length of a cell get a count of 1.
    """
    columns = [c for c in range(len(spreads)) if spreads[c] > 0]
    length = 0.0
    while any(spreads[c] <= length for c in columns) or not length:
        columns = [c for c in columns if spreads[c] > length]
        if not columns:
            break
        length = float((math.prod(spreads[c] for c in columns) / leaves) ** (1.0 / len(columns)))
    return [spreads[c] / length if c in columns else 1.0 for c in range(len(spreads))]


def _near(leaves: int, ideal: Sequence[float]) -> list[list[float]]:
    """Returns candidates whose slab counts are integers near the ideal counts.

    The last column takes the remaining files, so its count is not rounded.
    """
    first, found = ideal[:-1], []
    for more in range(len(first) + 1):
        for most in range(more + 1):
            counts = []
            for i, count in enumerate(first):
                extra = 2 if i < most else 1 if i < more else 0
                is_whole = abs(count - round(count)) <= ABOUT * count
                counts.append(float(round(count) if is_whole else math.floor(count) + extra))
            last = leaves / math.prod(counts)
            if last >= 1:
                found.append([*counts, last])
    if not found:  # every candidate needs more cells than there are files, so round all counts down
        down = [float(math.floor(count)) for count in first]
        found.append([*down, leaves / math.prod(down)])
    return found


class _Split(NamedTuple):
    column: int
    cut: int
    left_slabs: int
    left_leaves: int
    unevenness: float


class _Builder:
    """Builds a tree top down.

    Each node divides its leaves between two sides, and its sampled rows in the same proportion. If
    equal ids prevent such a cut, the node cuts at the nearest possible place.
    """

    def __init__(self, ids: Sequence[Ids], in_grid: bool) -> None:
        self._in_grid = in_grid
        #: The columns' spreads, summed over all files so far. The number of files that lookups open
        #: is proportional to this sum.
        self.width = 0.0
        self._ids = [np.asarray(column, dtype=np.int32) for column in ids]
        self._places = [_places(column) for column in self._ids]
        self._nodes: list[Any] = []

    def build(self, leaves: int) -> KdTree:
        rows, columns = np.arange(len(self._ids[0])), range(len(self._ids))
        spreads = [self._spread(c, rows) for c in columns]
        slabs = grid(leaves, spreads) if self._in_grid else []
        self._grow(rows, 0, leaves, slabs)
        return _tree(self._nodes, leaves)

    def _grow(self, rows: npt.NDArray[np.int64], first: int, leaves: int, slabs: list[int]) -> None:
        """Adds the subtree that contains the given rows.

        Args:
            rows: positions of the sampled rows.
            first: the subtree's first file.
            leaves: the subtree's number of files.
            slabs: number of slabs that each column must still be cut into. If the list is empty or
                all numbers are 1, columns are cut in half.
        """
        split = self._choose(rows, leaves, slabs) if leaves > 1 else None
        if split is None:
            for c in range(len(self._ids)):
                self.width += leaves * self._spread(c, rows)
            self._nodes.append((-1, first, leaves))
            return
        number = len(self._nodes)
        self._nodes.append(None)
        is_left = self._ids[split.column][rows] < split.cut
        left, right = list(slabs), list(slabs)
        if slabs and slabs[split.column] > 1:
            left[split.column] = split.left_slabs
            right[split.column] -= split.left_slabs
        self._grow(rows[is_left], first, split.left_leaves, left)
        self._nodes[number] = (split.column, split.cut, len(self._nodes))
        self._grow(rows[~is_left], first + split.left_leaves, leaves - split.left_leaves, right)

    def _choose(self, rows: npt.NDArray[np.int64], leaves: int, slabs: list[int]) -> _Split | None:
        """Returns a cut of the widest column that can be cut evenly enough.

        If no column can be cut evenly enough, returns the most even cut. Returns None if all rows
        have the same ids.
        """
        spreads = [(c, self._spread(c, rows)) for c in range(len(self._ids))]
        wide = {c: width for c, width in spreads if width > 0}
        able = {c: width for c, width in wide.items() if _slabs_of(c, leaves, slabs) > 1} or wide
        best: _Split | None = None
        for c in self._widest_first(able):
            if best is not None and best.unevenness <= TOLERATED:
                break
            found = self._split(c, rows, leaves, max(2, _slabs_of(c, leaves, slabs)))
            if best is None or best.unevenness > found.unevenness:
                best = found
        return best

    def _widest_first(self, widths: dict[int, float]) -> list[int]:
        enough = ABOUT_AS_WIDE * max(widths.values(), default=0)
        equal = [c for c in widths if widths[c] >= enough]
        narrower = sorted(widths.keys() - equal, key=lambda c: (-widths[c], c))
        return equal + narrower

    def _split(self, c: int, rows: npt.NDArray[np.int64], leaves: int, slabs: int) -> _Split:
        """Returns the cut that comes closest to halving a column's slabs.

        The rows must have more than one distinct id in the column.
        """
        ids = np.sort(self._ids[c][rows])
        count = len(ids)
        wanted = max(1, int(leaves * (slabs // 2) / slabs + 0.5))
        aim = count * wanted // leaves
        before = int(np.searchsorted(ids, ids[aim], side="left"))
        after = int(np.searchsorted(ids, ids[aim], side="right"))
        is_after = before == 0 or (after < count and after - aim < aim - before)
        at = after if is_after else before
        share = at / count
        left = min(leaves - 1, max(1, int(share * leaves + 0.5)))
        fullest = max(share / left, (1 - share) / (leaves - left)) * leaves
        return _Split(c, int(ids[at]), slabs // 2, left, fullest - 1)

    def _spread(self, c: int, rows: npt.NDArray[np.int64]) -> float:
        """Returns the distance between the positions of a cell's lowest and highest ids."""
        if not len(rows):
            return 0.0
        ids = self._ids[c][rows]
        least, greatest = int(ids.min()), int(ids.max())
        return (
            float(self._places[c][greatest] - self._places[c][least]) if greatest > least else 0.0
        )


def _slabs_of(c: int, leaves: int, slabs: list[int]) -> int:
    """Returns how many slabs a column must still be cut into, or 1 if there is no grid."""
    if not slabs:
        return 1
    if slabs[c] != REST:
        return slabs[c]
    return int(leaves / math.prod(count for count in slabs if count != REST) + 0.5)


def _places(column: Ids) -> npt.NDArray[np.float64]:
    """Returns each id's position.

    This is the share of rows below the id, plus half the share of rows that have the id.
    """
    counts = np.bincount(column)
    return (np.cumsum(counts) - counts + counts / 2.0) / len(column)


def _tree(nodes: Sequence[tuple[int, int, int]], leaves: int) -> KdTree:
    column, cut, right = (np.array(part, dtype=np.int32) for part in zip(*nodes, strict=True))
    return KdTree(column, cut, right, leaves)
