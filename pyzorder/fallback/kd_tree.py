"""Cuts the space of range ids into cells of about as many rows, each of which becomes a file.

The tree is that of io.pyzorder.layout.KdTree and KdTreeBuilder, node by node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]

#: A file may hold this share more than its neighbours before another column is tried.
TOLERATED = 0.25

#: Columns of this share of the widest one's spread are as wide: their order decides.
ABOUT_AS_WIDE = 0.9


class KdTree(NamedTuple):
    """
    Exactly `leaf_count` cells, numbered in z-order. A node splits `column` at the id `cut`, and the
    nodes of its right side begin at `right`, those of its left one after it. A leaf has column -1,
    its first file in `cut` and its number of files in `right`: more than one where a combination of
    ids is heavier than a file, whose rows are then dealt out.
    """

    column: npt.NDArray[np.int32]
    cut: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    leaf_count: int

    def leaves(self, ids: Sequence[Ids], turns: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The leaf of each row, 0 until `leaf_count`.

        `ids`: of each column, one a row; `turns`: any numbers from 0 that differ from row to row.
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
    """The tree over a sample of rows: `ids` of each column, one a row, null being 0.

    Of two trees, in which columns of equal spread are cut in their order or the last one first, the
    one in which the first columns are narrower in the end.
    """
    if leaves < 1:
        raise ValueError(f"a k-d tree has at least one leaf, not {leaves}")
    if leaves == 1 or not len(ids) or not len(ids[0]):
        return _tree([(-1, 0, leaves)], leaves)
    builders = [_Builder(ids, backwards) for backwards in [False, True][: len(ids)]]
    trees = [builder.build(leaves) for builder in builders]
    return trees[min(range(len(trees)), key=lambda n: builders[n].width)]


class _Split(NamedTuple):
    column: int
    cut: int
    left_leaves: int
    unevenness: float


class _Builder:
    """Grows a tree top down: a node of n leaves goes to n/2 and the rest, cut where the sampled
    rows have that proportion; where equal ids do not let it be cut there, at the nearest place."""

    def __init__(self, ids: Sequence[Ids], backwards: bool) -> None:
        self._backwards = backwards
        #: What is left of the columns in the files grown, the first column counting most.
        self.width = 0.0
        self._ids = [np.asarray(column, dtype=np.int32) for column in ids]
        self._places = [_places(column) for column in self._ids]
        self._nodes: list[Any] = []

    def build(self, leaves: int) -> KdTree:
        self._grow(np.arange(len(self._ids[0])), 0, leaves)
        return _tree(self._nodes, leaves)

    def _grow(self, rows: npt.NDArray[np.int64], first: int, leaves: int) -> None:
        split = self._choose(rows, leaves) if leaves > 1 else None
        if split is None:
            for c in range(len(self._ids)):
                self.width += leaves * self._spread(c, rows) / (c + 1)
            self._nodes.append((-1, first, leaves))
            return
        number = len(self._nodes)
        self._nodes.append(None)
        is_left = self._ids[split.column][rows] < split.cut
        self._grow(rows[is_left], first, split.left_leaves)
        self._nodes[number] = (split.column, split.cut, len(self._nodes))
        self._grow(rows[~is_left], first + split.left_leaves, leaves - split.left_leaves)

    def _choose(self, rows: npt.NDArray[np.int64], leaves: int) -> _Split | None:
        """The widest column that can be cut into even files, else the one that can be cut most
        evenly; None where all rows share their ids."""
        spreads = [(c, self._spread(c, rows)) for c in range(len(self._ids))]
        best: _Split | None = None
        for c in self._widest_first({c: width for c, width in spreads if width > 0}):
            if best is not None and best.unevenness <= TOLERATED:
                break
            found = self._split(c, rows, leaves)
            if best is None or best.unevenness > found.unevenness:
                best = found
        return best

    def _widest_first(self, widths: dict[int, float]) -> list[int]:
        enough = ABOUT_AS_WIDE * max(widths.values(), default=0)
        equal = [c for c in widths if widths[c] >= enough]
        narrower = sorted(widths.keys() - equal, key=lambda c: (-widths[c], c))
        return (equal[::-1] if self._backwards else equal) + narrower

    def _split(self, c: int, rows: npt.NDArray[np.int64], leaves: int) -> _Split:
        """The cut of one column nearest to half of the leaves. The column has two ids at least."""
        ids = np.sort(self._ids[c][rows])
        count = len(ids)
        aim = count * (leaves // 2) // leaves
        before = int(np.searchsorted(ids, ids[aim], side="left"))
        after = int(np.searchsorted(ids, ids[aim], side="right"))
        is_after = before == 0 or (after < count and after - aim < aim - before)
        at = after if is_after else before
        share = at / count
        left = min(leaves - 1, max(1, int(share * leaves + 0.5)))
        fullest = max(share / left, (1 - share) / (leaves - left)) * leaves
        return _Split(c, int(ids[at]), left, fullest - 1)

    def _spread(self, c: int, rows: npt.NDArray[np.int64]) -> float:
        """Distance, as a share of all rows, between the least and greatest id of a cell."""
        if not len(rows):
            return 0.0
        ids = self._ids[c][rows]
        least, greatest = int(ids.min()), int(ids.max())
        return (
            float(self._places[c][greatest] - self._places[c][least]) if greatest > least else 0.0
        )


def _places(column: Ids) -> npt.NDArray[np.float64]:
    """For every id the share of rows below it and half of its own: its place among all rows."""
    counts = np.bincount(column)
    return (np.cumsum(counts) - counts + counts / 2.0) / len(column)


def _tree(nodes: Sequence[tuple[int, int, int]], leaves: int) -> KdTree:
    column, cut, right = (np.array(part, dtype=np.int32) for part in zip(*nodes, strict=True))
    return KdTree(column, cut, right, leaves)
