"""One column's sorted distinct boundaries, and the rank of any value among them.

The readable reference of io.pyzorder.expressions.Boundaries, and its fallback.
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
    """One column's sorted distinct boundaries, and the rank of any value among them."""

    data_type: str
    longs: npt.NDArray[np.int64] | None
    wholes: list[bytes] | None

    @property
    def size(self) -> int:
        """Number of boundaries."""
        return len(self.wholes) if self.longs is None else len(self.longs)  # type: ignore[arg-type]

    @property
    def id_count(self) -> int:
        """Number of range ids: one between any two boundaries, one at each end, one for null."""
        return self.size + 2

    def range_ids(self, values: Column) -> npt.NDArray[np.int32]:
        """The range id of each value: 0 for null, else 1 + the number of boundaries <= it."""
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
        """Range ids stretched over all of `bits` bits: floor(id * 2^bits / id_count)."""
        return interleave.stretched(ids, self.id_count, bits)


def from_values(data_type: str, values: Column) -> Boundaries:
    """Boundaries at each distinct value among `values`, in any order; nulls are left out."""
    if not ordered_bytes.supports(data_type):
        raise TypeError(f"values of type {data_type} have no order")
    if ordered_bytes.is_long(data_type):
        present = ordered_bytes.long_of(values, data_type)[~ordered_bytes.null_mask(values)]
        return Boundaries(data_type, np.unique(present), None)
    wholes = {w for w in ordered_bytes.whole_of(values, data_type) if w is not None}
    return Boundaries(data_type, None, sorted(wholes))
