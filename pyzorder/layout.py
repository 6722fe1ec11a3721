"""The value ranges of a table's data files, from which pictures are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyzorder import bridge, errors
from pyzorder.explain import Explanation, explain
from pyzorder.session import check_session
from pyzorder.text import html_table
from pyzorder.text.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Value = bool | int | float | Decimal | str
"""A value in Spark's internal representation: dates in days, timestamps and day-time intervals in
microseconds, year-month intervals in months, times in nanoseconds. BINARY is hexadecimal text."""

Range = tuple[Value | None, Value | None]
"""Lower and upper limit. None means that there is no limit."""


@dataclass(frozen=True)
class Column:
    """A column or a struct field, with its name and type in SQL notation."""

    name: str
    type: str


@dataclass(frozen=True)
class DataFile:
    """A data file, and its range of values in each column."""

    path: str
    size: int
    rows: int | None
    """Number of rows; None if the file could not be read."""
    indexed: bool
    clustered_by: tuple[str, ...]
    bounds: tuple[tuple[Value, Value] | None, ...]
    """Minimum and maximum of each column; None if they are unknown or the column is `empty`."""
    empty: tuple[bool, ...]
    """For each column, whether all values are null or NaN."""


@dataclass(frozen=True)
class Layout:
    """A table's files and, for a query, the files that it opens and the box that it searches."""

    table: str
    target: str
    """The table, written as the target of a statement."""
    has_index: bool
    root: str
    format: str
    zone: str
    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    where: str | None = None
    opened: frozenset[str] | None = None
    """Paths of the files that the query opens; None if there is no query."""
    box: tuple[Range, ...] = ()
    explanation: Explanation | None = None

    def only(self, *places: int) -> Layout:
        """Returns this layout with only the columns at these positions."""
        files = [
            replace(
                file,
                bounds=tuple(file.bounds[i] for i in places),
                empty=tuple(file.empty[i] for i in places),
            )
            for file in self.files
        ]
        return replace(
            self,
            columns=tuple(self.columns[i] for i in places),
            files=tuple(files),
            box=tuple(self.box[i] for i in places) if self.box else (),
        )

    def covering(self) -> list[DataFile]:
        """Returns the files with known bounds for every column."""
        return [file for file in self.files if None not in file.bounds]

    def notes(self) -> list[str]:
        """Returns sentences about files that pictures omit, and about unindexed files."""
        hidden = {"without rows": [file for file in self.files if file.rows == 0]}
        for i, column in enumerate(self.columns):
            filled = [file for file in self.files if file.rows != 0]
            hidden[f"with only nulls or NaN in {column.name}"] = [
                file for file in filled if file.empty[i]
            ]
            hidden[f"with unknown bounds for {column.name}"] = [
                file for file in filled if file.bounds[i] is None and not file.empty[i]
            ]
        found = []
        for which, files in hidden.items():
            opened = sum(file.path in (self.opened or ()) for file in files)
            asked = f", {opened:,} of them opened" if opened else ""
            if files:
                found.append(f"Not shown: {counted(len(files), 'file')} {which}{asked}.")
        unindexed = sum(not file.indexed for file in self.files)
        if unindexed:
            found.append(
                f"Unindexed: {counted(unindexed, 'file')}, which every query opens until "
                "CREATE or REFRESH SKIPPING INDEX is run."
            )
        return found

    def _repr_html_(self) -> str:
        rows = [
            [i, file.rows, file.size, "yes" if file.indexed else "no", *map(shown, file.bounds)]
            for i, file in enumerate(self.files[:50], 1)
        ]
        head = ["", "rows", "bytes", "indexed", *(column.name for column in self.columns)]
        caption = f"{self.table}: {counted(len(self.files), 'file')}"
        if len(rows) < len(self.files):
            caption += f" (the first {len(rows)} are shown)"
        return html_table.table(caption, head, rows)


def read(
    spark: SparkSession,
    table: str,
    columns: Sequence[str] | None = None,
    where: str | None = None,
) -> Layout:
    """Reads the layout of a table from its index.

    If files are missing from the index, reads these files, or only their footers where the footers
    are sufficient. Nothing is written.

    Args:
        table: the table's name in SQL syntax, or the path of its folder.
        columns: the columns whose bounds are read, named as in ZORDER BY. By default, these are the
            columns that the files are clustered by.
        where: the condition of a query. The layout then includes the files that the query opens, as
            reported by `pyzorder.explain`.

    Raises:
        ZOrderError: the session does not run pyzorder, or is a Spark Connect session.
        AnalysisException: the table or a column does not exist, or the condition is invalid.
    """
    if bridge.is_connect(spark):
        raise errors.connect_has_no_layout()
    check_session(spark)
    found = bridge.layout(spark, table, list(columns or ()))
    named = tuple(Column(column["name"], column["type"]) for column in found["columns"])
    types = [column.type for column in named]
    files = tuple(data_file(file, types) for file in found["files"])
    layout = Layout(
        found["table"],
        found["target"],
        found["index"],
        found["root"],
        found["format"],
        found["zone"],
        named,
        files,
    )
    if where is None:
        return layout
    query = bridge.rows(spark, table).where(where)
    explanation = explain(query)
    limits = bridge.box(query, [column.name for column in named])
    box = [
        (value(low, type_), value(high, type_))
        for (low, high), type_ in zip(limits, types, strict=True)
    ]
    opened = opened_of(explanation, [file.path for file in files])
    return replace(layout, where=where, opened=opened, box=tuple(box), explanation=explanation)


def opened_of(explanation: Explanation, paths: Sequence[str]) -> frozenset[str]:
    """Returns the files that a query's scans open.

    Returns all files if the list of a scan's opened files is incomplete.
    """
    opened: set[str] = set()
    for scan in explanation:
        named = scan.details["opened"]
        opened.update(named if len(named) == scan.opened else paths)
    return frozenset(opened.intersection(paths))


def data_file(found: dict[str, Any], types: Sequence[str]) -> DataFile:
    """Converts a file in the JVM's description to a `DataFile`."""
    bounds = [
        None if pair is None else (value(pair[0], type_), value(pair[1], type_))
        for pair, type_ in zip(found["bounds"], types, strict=True)
    ]
    return DataFile(
        found["path"],
        found["size"],
        found["rows"],
        found["indexed"],
        tuple(found["clusteredBy"]),
        tuple(bounds),
        tuple(found["empty"]),
    )


def value(told: Any, type_: str) -> Any:
    """Converts a value in the JVM's description.

    Decimals arrive as strings to keep all digits, and infinities because JSON has no numbers for
    them.
    """
    if isinstance(told, str) and type_.startswith("DECIMAL"):
        return Decimal(told)
    if isinstance(told, str) and type_ in ("FLOAT", "DOUBLE"):
        return math.inf if told == "Infinity" else -math.inf
    return told


def shown(bounds: tuple[Value, Value] | None) -> str:
    """Formats bounds as text."""
    return "" if bounds is None else f"{bounds[0]} … {bounds[1]}"
