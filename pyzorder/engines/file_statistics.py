"""File statistics that are valid in every engine, not only in Spark.

Each listed file is matched with the index entry that has the same path, size and modification time.
A file without such an entry has no known statistics. Partition columns have the same value in all
rows of a file, so their statistics are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyzorder.engines import values
from pyzorder.engines.partitions import PartitionColumn
from pyzorder.engines.tables import Table
from pyzorder.engines.values import Value
from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.predicates.conditions import NotUnderstood
from pyzorder.index.predicates.monotonic_functions import FLOATS
from pyzorder.index.read_settings import SEPARATOR
from pyzorder.index.snapshot_statistics import Flags, SnapshotStatistics
from pyzorder.index.snapshots import Snapshot

#: The first day of the Gregorian calendar, 1582-10-15. From this day on, all writers represent
#: each date by the same number.
_GREGORIAN = -141_427

#: Settings that make Spark find columns by field id, by position or by case-sensitive name.
_OTHERWISE = ("fieldids=true", "orcpositions=true", "casesensitive=true")


class PortableStatistics(SnapshotStatistics):
    """The statistics of a snapshot that describe values as they are stored.

    Depending on its settings, Spark may change dates and timestamps when it reads them. Other
    engines read them as stored, so bounds that depend on settings are not used. Bounds of dates are
    still used if the dates are the same under every setting.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        texts = pc.unique(snapshot.rows["read_settings"]).to_pylist()
        by_name = [
            text
            for text in texts
            if SEPARATOR in text and not any(bad in text.lower() for bad in _OTHERWISE)
        ]
        found = pc.is_in(snapshot.rows["read_settings"], pa.array(by_name, pa.string()))
        self.usable: Flags = found.to_numpy().astype(bool)

    def agrees(self, column: IndexedColumn) -> Flags:
        """Returns, for each entry, whether its bounds are valid for the values as stored."""
        stored = ~self._bools(f"{column.name}_settings_dependent")
        if column.data_type == "date":
            least = self.snapshot.rows[f"{column.name}_minValue"].cast(pa.int32())
            stored |= least.fill_null(_GREGORIAN - 1).to_numpy() >= _GREGORIAN
        return stored

    def known(self, column: IndexedColumn) -> Flags:
        """Returns, for each entry, whether both bounds are known and usable."""
        rows = self.snapshot.rows
        ends = [pc.is_valid(rows[f"{column.name}_{end}"]) for end in ("minValue", "maxValue")]
        both: Flags = pc.and_(*ends).to_numpy().astype(bool)
        return both & self.agrees(column) & self.usable


class FileStatistics:
    """The statistics of the listed files of a table, one row per file."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.columns: tuple[IndexedColumn, ...] = ()
        self.entries: npt.NDArray[np.int64] = np.full(len(table.files), -1)
        if table.snapshot is not None:
            self.portable = PortableStatistics(table.snapshot)
            self.columns = table.snapshot.columns
            self.entries = _matched(table, table.snapshot)
            found = np.flatnonzero(self.is_indexed)
            self.entries[found[~self.portable.usable[self.entries[found]]]] = -1

    @property
    def is_indexed(self) -> Flags:
        """For each file, whether it has an entry that describes it."""
        return self.entries >= 0

    @cached_property
    def num_records(self) -> Any:
        """The number of rows in each file; null if it is unknown."""
        if self._table.snapshot is None:
            return pa.nulls(len(self._table.files), pa.int64())
        return self.taken(self._table.snapshot.rows["num_records"])

    def taken(self, entries: Any) -> Any:
        """Returns the values of the listed files, given the values of all entries."""
        if not len(entries):
            return pa.nulls(len(self.entries), entries.type)
        found = pa.array(self.entries, mask=~self.is_indexed)
        return pa.chunked_array([entries.take(found).combine_chunks()])

    def of_column(self, number: int) -> dict[tuple[str, ...], Value]:
        """Returns the statistics of an indexed column, keyed by the names that filters use for
        them."""
        column = self.columns[number]
        data_type = values.sql_name(column.data_type)
        known = self.portable.known(column)
        rows = self.portable.snapshot.rows
        ends = []
        for end in ("minValue", "maxValue"):
            stored = self.taken(rows[f"{column.name}_{end}"])
            try:
                ends.append(Value(values.represented(stored, data_type), data_type))
            except NotUnderstood:
                known = np.zeros_like(known)
                ends.append(Value(pa.nulls(len(self.entries), pa.int64()), "void"))
        flags = [
            self._spread(flag, otherwise)
            for flag, otherwise in zip(
                self.portable.flags(column, known), (False, False, True, True, True), strict=True
            )
        ]
        arrays = [pa.array(flag) for flag in flags]
        low, high = (Value(_where(arrays[0], end.data), end.data_type) for end in ends)
        return _named(number, low, high, arrays)

    def _spread(self, flag: Flags, otherwise: bool) -> Flags:
        """Returns the flags of the listed files, given the flags of all entries."""
        if not len(flag):
            return np.full(len(self.entries), otherwise)
        return np.where(self.is_indexed, flag[self.entries], otherwise)

    def of_partition(self, number: int, column: PartitionColumn) -> dict[tuple[str, ...], Value]:
        """Returns the statistics of a partition column, keyed by the names that filters use for
        them."""
        found = [column.values[folder] for folder in self._table.folders]
        data = pa.array(found, column.arrow_type)
        is_null, never = pc.is_null(data), pa.array(np.zeros(len(found), dtype=bool))
        data_type = column.data_type
        if data_type == "timestamp":  # the instants depend on the session's time zone
            value, bounded, is_nan = Value(pa.nulls(len(found)), "void"), never, never
            is_empty = is_null
        else:
            data = values.represented(data, data_type)
            is_nan = pc.fill_null(pc.is_nan(data), False) if data_type in FLOATS else never
            is_empty = pc.or_(is_null, is_nan)
            bounded = pc.invert(is_empty)
            value = Value(_where(bounded, data), data_type)
        flags = [bounded, is_empty, is_nan, is_null, pc.invert(is_null)]
        return _named(number, value, value, flags)


def _where(condition: Any, data: Any) -> Any:
    return pc.if_else(condition, data, pa.scalar(None, data.type))


def _named(number: int, low: Value, high: Value, flags: list[Any]) -> dict[tuple[str, ...], Value]:
    found: dict[tuple[str, ...], Value] = {(f"m{number}",): low, (f"x{number}",): high}
    for letter, flag in zip("bequv", flags, strict=True):
        found[(f"{letter}{number}",)] = Value(flag, "boolean")
    is_float = low.data_type in FLOATS
    is_nonzero = pc.not_equal(low.data, 0.0) if is_float else pa.scalar(True)
    found[(f"w{number}",)] = Value(is_nonzero, "boolean")
    return found


def _texts(names: Sequence[str]) -> pa.Array:
    """Converts names to an array. Names that are not UTF-8 become null."""
    try:
        return pa.array(names, pa.string())
    except UnicodeEncodeError:
        known = [None if any("\ud800" <= c <= "\udfff" for c in name) else name for name in names]
        return pa.array(known, pa.string())


def _matched(table: Table, snapshot: Snapshot) -> npt.NDArray[np.int64]:
    """Returns the position of each listed file's entry, or -1 if the file has no entry or has
    changed."""
    rows = snapshot.rows
    files = table.files
    if not rows.num_rows or not len(files):
        return np.full(len(files), -1)
    paths = _texts(files.paths)
    found = pc.index_in(paths, rows["path"].combine_chunks()).fill_null(-1).to_numpy()
    found = found.astype(np.int64)
    for name, listed in (
        ("size", files.sizes),
        ("modification_time", files.modified),
    ):
        found[rows[name].to_numpy()[found] != listed] = -1
    return found
