"""What a table's data files cover of some columns: what pictures are drawn of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyzorder import bridge, errors, html_table
from pyzorder.explain import Explanation, explain
from pyzorder.session import check_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Value = bool | int | float | Decimal | str
"""As Spark keeps it: days, microseconds, months, nanoseconds (TIME); hexadecimal for BINARY."""

Range = tuple[Value | None, Value | None]
"""Least and greatest value; None: no limit."""


@dataclass(frozen=True)
class Column:
    """A column, or a field of a struct, named as in SQL; its type as SQL writes it."""

    name: str
    type: str


@dataclass(frozen=True)
class DataFile:
    """One data file, and what it covers of each column."""

    path: str
    size: int
    rows: int | None
    """None: the file could not be read."""
    indexed: bool
    clustered_by: tuple[str, ...]
    bounds: tuple[tuple[Value, Value] | None, ...]
    """Least and greatest value of each column; None: it has none, or they are not known."""
    empty: tuple[bool, ...]
    """For each column: all of its values are null or NaN."""


@dataclass(frozen=True)
class Layout:
    """A table's files; with a query, which of them it opens, and the box that it looks into."""

    table: str
    target: str
    """The table as statements name it."""
    has_index: bool
    root: str
    format: str
    zone: str
    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    where: str | None = None
    opened: frozenset[str] | None = None
    """Paths of the files that the query opens; None: there is no query."""
    box: tuple[Range, ...] = ()
    explanation: Explanation | None = None

    def only(self, *places: int) -> Layout:
        """The same files, of only the columns at these places."""
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
        """The files that have bounds of every column."""
        return [file for file in self.files if None not in file.bounds]

    def notes(self) -> list[str]:
        """Sentences on the files that a picture shows in a special way, or not at all."""
        hidden = {"without rows": [file for file in self.files if file.rows == 0]}
        for i, column in enumerate(self.columns):
            filled = [file for file in self.files if file.rows != 0]
            hidden[f"with nothing but nulls or NaN in {column.name}"] = [
                file for file in filled if file.empty[i]
            ]
            hidden[f"whose bounds of {column.name} are not known"] = [
                file for file in filled if file.bounds[i] is None and not file.empty[i]
            ]
        found = []
        for which, files in hidden.items():
            opened = sum(file.path in (self.opened or ()) for file in files)
            asked = f", {opened:,} of them opened" if opened else ""
            if files:
                found.append(f"Not shown: {counted(len(files))} {which}{asked}.")
        unindexed = sum(not file.indexed for file in self.files)
        if unindexed:
            them = "it" if unindexed == 1 else "them"
            found.append(
                f"Not in the index: {counted(unindexed)}; every query opens {them} "
                "until CREATE or REFRESH SKIPPING INDEX."
            )
        return found

    def _repr_html_(self) -> str:
        rows = [
            [i, file.rows, file.size, "yes" if file.indexed else "no", *map(shown, file.bounds)]
            for i, file in enumerate(self.files[:50], 1)
        ]
        head = ["", "rows", "bytes", "indexed", *(column.name for column in self.columns)]
        caption = f"{self.table}: {counted(len(self.files))}"
        if len(rows) < len(self.files):
            caption += f", the first {len(rows)} of them"
        return html_table.table(caption, head, rows)


def read(
    spark: SparkSession,
    table: str,
    columns: Sequence[str] | None = None,
    where: str | None = None,
) -> Layout:
    """The files of a table, from its index; those that it lacks are read, footers first.

    Nothing is written. `table` is a name as in SQL or the path of a folder, `columns` are named as
    in ZORDER BY (None: those the files are clustered by), `where` is the condition of a query,
    whose files are those that `pyzorder.explain` says it opens.

    Raises:
        ZOrderError: the session does not run pyzorder, or is a Spark Connect client's.
        AnalysisException: there is no such table or column, or the condition is none.
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
    """Those of the files that some scan of the query opens; all, where a scan names none."""
    opened: set[str] = set()
    for scan in explanation:
        named = scan.details["opened"]
        opened.update(named if len(named) == scan.opened else paths)
    return frozenset(opened.intersection(paths))


def data_file(found: dict[str, Any], types: Sequence[str]) -> DataFile:
    """One file of the JVM's answer."""
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
    """A value of the JVM's answer: text stands for what JSON's numbers are too coarse for."""
    if isinstance(told, str) and type_.startswith("DECIMAL"):
        return Decimal(told)
    if isinstance(told, str) and type_ in ("FLOAT", "DOUBLE"):
        return math.inf if told == "Infinity" else -math.inf
    return told


def shown(bounds: tuple[Value, Value] | None) -> str:
    """Bounds as text."""
    return "" if bounds is None else f"{bounds[0]} … {bounds[1]}"


def counted(files: int) -> str:
    """`1 file`, `2 files`."""
    return f"{files:,} file{'' if files == 1 else 's'}"
