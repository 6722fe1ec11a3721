"""Where each row goes: its file, and its place in it. Runs in Spark's Python workers.

These need NumPy and pandas but not pyzorder: this module and kd_tree are sent to them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyzorder.fallback.kd_tree import KdTree, build

#: So many distinct ranks of a column tell files apart well enough.
MAX_BOUNDARIES = 1 << 16

Values = npt.NDArray[Any]
Nulls = npt.NDArray[np.bool_]


class Boundaries:
    """Distinct values of one column in order: the range id of a value is 0 for null, else 1 + the
    number of those at most as great. As pyzorder.boundaries, of 64-bit numbers, doubles or
    bytes."""

    def __init__(self, values: Values, nulls: Nulls) -> None:
        """`values` as drawn; any where `nulls`."""
        present = values[~nulls]
        self._numbers: Values | None = None
        self._octets: list[bytes] = []
        if present.dtype == object:
            octets = sorted({bytes(value) for value in present})
            self._octets = octets[:: len(octets) // MAX_BOUNDARIES + 1]
        else:
            numbers: Values = np.unique(present)
            self._numbers = numbers[:: len(numbers) // MAX_BOUNDARIES + 1]

    @property
    def id_count(self) -> int:
        """One id between any two boundaries, one at each end, one for null."""
        return 2 + (len(self._octets) if self._numbers is None else len(self._numbers))

    def range_ids(self, values: Values, nulls: Nulls) -> npt.NDArray[np.int32]:
        """The range id of each value."""
        if self._numbers is not None:
            ids = 1 + np.searchsorted(self._numbers, values, side="right")
        else:
            ids = np.array([1 + bisect_right(self._octets, bytes(v)) for v in values], dtype=int)
        return np.where(nulls, 0, ids).astype(np.int32)


class Placement:
    """Files and places of rows by their clustering columns, found from a sample of them."""

    def __init__(
        self, groups: npt.NDArray[np.int32], columns: Sequence[tuple[Values, Nulls]],
        leaves: Sequence[int], bits: int, spread: npt.NDArray[np.int64],
    ) -> None:  # fmt: skip
        """
        groups   number of each sampled row's table partition
        columns  values and nulls of each column, a row each
        leaves   number of files of each table partition
        bits     that a column has in a z-value
        spread   the bits of 0 to 65535, as many places apart as there are columns
        """
        self._boundaries = [Boundaries(values, nulls) for values, nulls in columns]
        ids = self._ids(columns)
        self._trees: list[KdTree] = [
            build([column[groups == group] for column in ids], count)
            for group, count in enumerate(leaves)
        ]
        #: The first file of each table partition, and the number of all files.
        self.first_leaf = np.concatenate([[0], np.cumsum([t.leaf_count for t in self._trees])])
        self._bits, self._spread = bits, spread
        #: What each file's rows say to come into one task together; see layout.
        self.task_keys: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)

    def leaves(
        self, groups: npt.NDArray[np.int32], turns: npt.NDArray[np.int64],
        ids: Sequence[npt.NDArray[np.int32]],
    ) -> npt.NDArray[np.int32]:  # fmt: skip
        """The file of each row; rows of one cell that is heavier than a file take turns."""
        found = np.zeros(len(groups), dtype=np.int32)
        for group in np.unique(groups):
            rows = groups == group
            own = self._trees[group].leaves([column[rows] for column in ids], turns[rows])
            found[rows] = own + self.first_leaf[group]
        return found

    def places(self, ids: Sequence[npt.NDArray[np.int32]]) -> npt.NDArray[np.int64]:
        """The z-value of each row: range ids stretched over all their bits, interleaved."""
        z = np.zeros(len(ids[0]), dtype=np.int64)
        for column, boundaries in zip(ids, self._boundaries, strict=True):
            wide = (column.astype(np.int64) << self._bits) // boundaries.id_count
            spread = self._spread[wide & 0xFFFF]
            if self._bits > 16:
                spread = spread | (self._spread[wide >> 16 & 0xFFFF] << (16 * len(ids)))
            z = (z << 1) | spread
        return z

    def of(self, groups: pd.Series, turns: pd.Series, *columns: pd.Series) -> pd.DataFrame:
        """Task key and place of each row; `columns` are values and nulls, in turns."""
        values = [column.to_numpy() for column in columns]
        ids = self._ids(list(zip(values[::2], values[1::2], strict=True)))
        leaves = self.leaves(groups.to_numpy(), turns.to_numpy(), ids)
        return pd.DataFrame({"task": self.task_keys[leaves], "place": self.places(ids)})

    def _ids(self, columns: Sequence[tuple[Values, Nulls]]) -> list[npt.NDArray[np.int32]]:
        return [
            boundaries.range_ids(values, nulls.astype(bool))
            for boundaries, (values, nulls) in zip(self._boundaries, columns, strict=True)
        ]
