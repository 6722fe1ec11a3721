"""The statistics of a snapshot that are valid for a scan with given settings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.read_settings import SEPARATOR, ReadSettings
from pyzorder.index.snapshots import Snapshot

Flags = npt.NDArray[np.bool_]


class SnapshotStatistics:
    """The statistics of a snapshot that a scan may use."""

    def __init__(self, snapshot: Snapshot, settings: ReadSettings) -> None:
        """`settings` are the settings of the scan.

        Bounds that may be wrong under these settings are treated as unknown.
        """
        self.snapshot = snapshot
        texts = snapshot.rows["read_settings"].to_pylist()
        split = {text: text.partition(SEPARATOR) for text in set(texts)}
        self._same_time = np.array(
            [bool(settings.temporal) and split[t][2] == settings.temporal for t in texts],
            dtype=bool,
        )
        #: For each entry, whether it applies to this scan.
        self.usable: Flags = np.array(
            [split[t][1] == SEPARATOR and split[t][0] == settings.structural for t in texts],
            dtype=bool,
        )

    def agrees(self, column: IndexedColumn) -> Flags:
        """Returns, for each entry, whether its bounds are valid under the temporal settings."""
        return ~self._bools(f"{column.name}_settings_dependent") | self._same_time

    def flags(self, column: IndexedColumn, known: Sequence[bool] | Flags) -> tuple[Flags, ...]:
        """Returns the flags b, e, q, u and v of predicates.bound_filters.

        Args:
            known: for each entry, whether both bounds are known.
        """
        bounded = np.array(known, dtype=bool)
        empty = self._bools(f"{column.name}_empty") & self.agrees(column)
        nan = np.zeros(len(bounded), dtype=bool)
        if column.is_float:
            nan = self._bools(f"{column.name}_nan_seen") | (~bounded & ~empty)
        rows = self.snapshot.rows
        nulls = rows[f"{column.name}_num_nulls"].fill_null(-1).to_numpy()
        may_be_null: Flags = nulls != 0
        not_all_null: Flags = nulls != rows["num_records"].to_numpy()
        return bounded, empty, nan, may_be_null, not_all_null & (~empty | nan)

    def _bools(self, name: str) -> Flags:
        return self.snapshot.rows[name].to_numpy().astype(bool)
