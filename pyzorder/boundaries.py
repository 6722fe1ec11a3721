"""Sorted distinct boundaries of a column, and the ranks of values among them.

This is the readable reference implementation of io.pyzorder.expressions.Boundaries, and is used
where there is no JVM.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyzorder import interleave, ordered_bytes
from pyzorder.ordered_bytes import Column


@dataclass(frozen=True)
class Boundaries:
    """Sorted distinct boundaries of a column, and the ranks of values among them.

    Exactly one of `longs` and `wholes` is set, depending on `ordered_bytes.is_long(data_type)`.
    """

    data_type: str
    longs: npt.NDArray[np.int64] | None
    wholes: list[bytes] | None

    @property
    def size(self) -> int:
        """Number of boundaries."""
        return len(self.wholes) if self.longs is None else len(self.longs)  # type: ignore[arg-type]

    @property
    def id_count(self) -> int:
        """Number of range ids: one for null, and one per interval that the boundaries delimit."""
        return self.size + 2

    def range_ids(self, values: Column) -> npt.NDArray[np.int32]:
        """Returns range ids: 0 for null, otherwise 1 + the number of boundaries <= the value."""
        if self.longs is not None:
            ids = 1 + np.searchsorted(
                self.longs, ordered_bytes.long_of(values, self.data_type), side="right"
            )
            return np.where(ordered_bytes.null_mask(values), 0, ids).astype(np.int32)
        assert self.wholes is not None
        wholes = ordered_bytes.whole_of(values, self.data_type)
        ranks = [0 if w is None else 1 + bisect_right(self.wholes, w) for w in wholes]
        return np.array(ranks, dtype=np.int32)

    def stretched(self, ids: npt.NDArray[Any], bits: int) -> npt.NDArray[np.int64]:
        """Scales range ids to use all `bits` bits: floor(id * 2^bits / id_count)."""
        return interleave.stretched(ids, self.id_count, bits)


def from_values(data_type: str, values: Column) -> Boundaries:
    """Builds boundaries from the distinct non-null values in `values`, which may be in any order.

    Raises:
        TypeError: values of `data_type` have no order.
    """
    if not ordered_bytes.supports(data_type):
        raise TypeError(f"values of type {data_type} have no order")
    if ordered_bytes.is_long(data_type):
        present = ordered_bytes.long_of(values, data_type)[~ordered_bytes.null_mask(values)]
        return Boundaries(data_type, np.unique(present), None)
    wholes = {w for w in ordered_bytes.whole_of(values, data_type) if w is not None}
    return Boundaries(data_type, None, sorted(wholes))
