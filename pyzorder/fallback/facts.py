"""What an index says of its columns, as rows of a DataFrame that index filters are put to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyzorder.fallback.columns import sent_as, to_send
from pyzorder.fallback.read_settings import SEPARATOR, ReadSettings
from pyzorder.fallback.snapshots import IndexedColumn, Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Flags = npt.NDArray[np.bool_]


class Facts:
    """One snapshot as one scan may use it."""

    def __init__(self, snapshot: Snapshot, settings: ReadSettings) -> None:
        """`settings` are the scan's: bounds that depend on others are unknown."""
        self._snapshot = snapshot
        texts = snapshot.rows["read_settings"].to_pylist()
        split = {text: text.partition(SEPARATOR) for text in set(texts)}
        self._same_time = np.array(
            [bool(settings.temporal) and split[t][2] == settings.temporal for t in texts],
            dtype=bool,
        )
        #: Entries that say anything to this scan.
        self.usable: Flags = np.array(
            [split[t][1] == SEPARATOR and split[t][0] == settings.structural for t in texts],
            dtype=bool,
        )

    def frame(self, spark: SparkSession, numbers: Iterable[int], files: Sequence[int]) -> DataFrame:
        """A row for each of `files`, numbers of entries, with what filters ask of these columns.

        The entry's number is the column i; the others are those of bound_filters.
        """
        from pyspark.sql import functions as F

        lists: list[list[Any]] = [[int(i) for i in files]]
        schema, shown = ["i INT"], ["i"]
        for number in numbers:
            column = self._snapshot.columns[number]
            sent, made = sent_as(column.data_type) or ("BOOLEAN", "{0}")
            bounds = self._bounds(column)
            flags = self._flags(column, known=[v is not None for v in bounds[0]])
            for letter, values in zip("mx", bounds, strict=True):
                lists.append([values[i] for i in files])
                schema.append(f"{letter}{number} {sent}")
                shown.append(f"{made.format(f'{letter}{number}')} AS {letter}{number}")
            for letter, flag in zip("bequv", flags, strict=True):
                lists.append(flag[list(files)].tolist())
                schema.append(f"{letter}{number} BOOLEAN")
                shown.append(f"{letter}{number}")
            one_zero = f"m{number} != 0" if column.is_float else "true"
            shown.append(f"{one_zero} AS w{number}")
        rows = list(zip(*lists, strict=True))
        return spark.createDataFrame(rows, ", ".join(schema)).select(*map(F.expr, shown))

    def _bounds(self, column: IndexedColumn) -> tuple[list[Any], list[Any]]:
        """Least and greatest values as they are sent; both None where not both are known."""
        rows = self._snapshot.rows
        if sent_as(column.data_type) is None:
            return [None] * rows.num_rows, [None] * rows.num_rows
        ends = [
            to_send(rows[f"{column.name}_{end}"], column.data_type)
            for end in ("minValue", "maxValue")
        ]
        known = [a is not None and b is not None for a, b in zip(*ends, strict=True)]
        known = [k and bool(u) for k, u in zip(known, self._agrees(column), strict=True)]
        least, greatest = (
            [v if k else None for v, k in zip(values, known, strict=True)] for values in ends
        )
        return least, greatest

    def _flags(self, column: IndexedColumn, known: list[bool]) -> tuple[Flags, ...]:
        """b, e, q, u, v of bound_filters."""
        bounded = np.array(known, dtype=bool)
        empty = self._bools(f"{column.name}_empty") & self._agrees(column)
        nan = np.zeros(len(bounded), dtype=bool)
        if column.is_float:
            nan = self._bools(f"{column.name}_nan_seen") | (~bounded & ~empty)
        rows = self._snapshot.rows
        nulls = rows[f"{column.name}_num_nulls"].to_pylist()
        records = rows["num_records"].to_pylist()
        may_be_null = np.array([n != 0 for n in nulls], dtype=bool)
        not_all_null = np.array([n != r for n, r in zip(nulls, records, strict=True)], dtype=bool)
        return bounded, empty, nan, may_be_null, not_all_null & (~empty | nan)

    def _agrees(self, column: IndexedColumn) -> Flags:
        return ~self._bools(f"{column.name}_settings_dependent") | self._same_time

    def _bools(self, name: str) -> Flags:
        return np.array(self._snapshot.rows[name].to_pylist(), dtype=bool)
