"""Determines each row's file, and the row's position in it. Runs in Spark's Python workers.

Workers need NumPy and pandas but not pyzorder, because this module and kd_tree are sent to them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyzorder.fallback.kd_tree import KdTree, build

#: Maximum number of boundaries per column.
MAX_BOUNDARIES = 1 << 16

Values = npt.NDArray[Any]
Nulls = npt.NDArray[np.bool_]


class Boundaries:
    """Sorted distinct boundaries of a column of 64-bit integers, doubles or bytes.

    Range ids have the meaning defined in pyzorder.boundaries: 0 for null, otherwise 1 + the number
    of boundaries <= the value.
    """

    def __init__(self, values: Values, nulls: Nulls) -> None:
        """`values` are the sampled values. They are ignored where `nulls` is True."""
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
        """Number of range ids: one for null, and one per interval that the boundaries delimit."""
        return 2 + (len(self._octets) if self._numbers is None else len(self._numbers))

    def range_ids(self, values: Values, nulls: Nulls) -> npt.NDArray[np.int32]:
        """Returns the range id of each value."""
        if self._numbers is not None:
            ids = 1 + np.searchsorted(self._numbers, values, side="right")
        else:
            ids = np.array([1 + bisect_right(self._octets, bytes(v)) for v in values], dtype=int)
        return np.where(nulls, 0, ids).astype(np.int32)


class Placement:
    """Assigns rows to files and positions by their clustering values, based on a sample."""

    def __init__(
        self, groups: npt.NDArray[np.int32], columns: Sequence[tuple[Values, Nulls]],
        leaves: Sequence[int], bits: int, spread: npt.NDArray[np.int64],
    ) -> None:  # fmt: skip
        """Builds the boundaries and trees from a sample.

        Args:
            groups: for each sampled row, the position of its table partition in `leaves`.
            columns: for each column, the values and null flags of the sampled rows.
            leaves: the number of files of each table partition.
            bits: the number of bits per column in a z-value.
            spread: the numbers 0 to 65535 with their bits spread out. If there are n columns,
                neighboring bits are n places apart.
        """
        self._boundaries = [Boundaries(values, nulls) for values, nulls in columns]
        ids = self._ids(columns)
        self._trees: list[KdTree] = [
            build([column[groups == group] for column in ids], count)
            for group, count in enumerate(leaves)
        ]
        #: The first file of each table partition, followed by the total number of files.
        self.first_leaf = np.concatenate([[0], np.cumsum([t.leaf_count for t in self._trees])])
        self._bits, self._spread = bits, spread
        #: For each file, a number that Spark's hash partitioning assigns to the file's task.
        self.task_keys: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)

    def leaves(
        self, groups: npt.NDArray[np.int32], turns: npt.NDArray[np.int64],
        ids: Sequence[npt.NDArray[np.int32]],
    ) -> npt.NDArray[np.int32]:  # fmt: skip
        """Returns the file of each row. `turns` distribute the rows of a cell over its files."""
        found = np.zeros(len(groups), dtype=np.int32)
        for group in np.unique(groups):
            rows = groups == group
            own = self._trees[group].leaves([column[rows] for column in ids], turns[rows])
            found[rows] = own + self.first_leaf[group]
        return found

    def places(self, ids: Sequence[npt.NDArray[np.int32]]) -> npt.NDArray[np.int64]:
        """Returns the z-value of each row, which interleaves the row's stretched range ids."""
        z = np.zeros(len(ids[0]), dtype=np.int64)
        for column, boundaries in zip(ids, self._boundaries, strict=True):
            wide = (column.astype(np.int64) << self._bits) // boundaries.id_count
            spread = self._spread[wide & 0xFFFF]
            if self._bits > 16:
                spread = spread | (self._spread[wide >> 16 & 0xFFFF] << (16 * len(ids)))
            z = (z << 1) | spread
        return z

    def of(self, groups: pd.Series, turns: pd.Series, *columns: pd.Series) -> pd.DataFrame:
        """Returns the task key and position of each row.

        Args:
            groups: for each row, the position of its table partition.
            turns: see `leaves`.
            columns: for each clustering column in turn, its values and its null flags.
        """
        values = [column.to_numpy() for column in columns]
        ids = self._ids(list(zip(values[::2], values[1::2], strict=True)))
        leaves = self.leaves(groups.to_numpy(), turns.to_numpy(), ids)
        return pd.DataFrame({"task": self.task_keys[leaves], "place": self.places(ids)})

    def _ids(self, columns: Sequence[tuple[Values, Nulls]]) -> list[npt.NDArray[np.int32]]:
        return [
            boundaries.range_ids(values, nulls.astype(bool))
            for boundaries, (values, nulls) in zip(self._boundaries, columns, strict=True)
        ]
