"""The advisor's result, which can be printed, shown in notebooks and converted to JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from pyzorder.text.wording import counted, percent, size

SHOWN = 8


@dataclass(frozen=True)
class Layout:
    """A layout of the table, and an estimate of how much data the workload would read with it."""

    name: str
    """`ZORDER BY (a, b)`, `sorted by (a, b)`, or a description of the current files."""

    columns: tuple[str, ...]
    """The clustering columns; empty for the current files."""

    bytes_opened: float
    """Total size of the files that a scan in the workload would open, on average."""

    share_of_present: float
    """`bytes_opened` divided by its value for the current files and index."""

    growth: float
    """Size of the table in this layout divided by its current size. The sizes differ because the
    order of rows affects compression. The ratio is measured for this layout or for the best layout
    with the same number of columns. 1 if it was not measured."""


@dataclass(frozen=True)
class ColumnUse:
    """How the workload uses a column.

    Each count is a number of readings. A reading is a scan of the table by a query.
    """

    column: str
    readings: int
    equality: int
    range: int
    in_list: int
    prefix: int
    join: int
    other: int
    rows_left: float | None
    """The median share of rows that the filters on the column keep. None if the filters cannot skip
    files, or if the column is a partition column."""


@dataclass(frozen=True)
class LeftOut:
    """The parts of the workload that are left out for one reason: their number, and an example."""

    reason: str
    count: int
    example: str


@dataclass(frozen=True)
class Advice:
    """A recommendation of clustering columns for a workload, and the evidence for it."""

    table: str
    statement: str | None
    """The statement to run; None if the advisor recommends neither OPTIMIZE nor an index."""

    recommended: tuple[str, ...]
    """The columns to cluster by; empty if clustering is not recommended."""

    reason: str
    layouts: tuple[Layout, ...]
    """The evaluated ZORDER BY layouts with 1 to 4 columns, best first."""

    sorted_layouts: tuple[Layout, ...]
    """Plain sorts by the best candidate's columns (`curve` = linear), best first."""

    present: Layout
    """The current files with the current index."""

    present_indexed: Layout
    """The current files with an index that covers all of them."""

    columns: tuple[ColumnUse, ...]
    left_out: tuple[LeftOut, ...]
    statements: int
    reading_statements: int
    readings: int
    rows: int
    sampled_rows: int
    files: int
    bytes: int
    new_files: int
    remarks: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the advice as a dict of JSON types."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        tables = "".join(
            f"<h4>{escape(title)}</h4><table>{html_rows(rows)}</table>"
            for title, rows in self._tables()
        )
        said = [*self._header(), *self.remarks]
        verdict = f"<p><b>{escape(self.reason)}</b></p>"
        run = f"<pre>{escape(self.statement)}</pre>" if self.statement else ""
        return f"<p>{'<br>'.join(map(escape, said))}</p>{tables}{verdict}{run}"

    def _lines(self) -> Iterator[str]:
        yield from self._header()
        for title, rows in self._tables():
            yield ""
            yield title
            yield from text_rows(rows)
        yield ""
        for remark in self.remarks:
            yield f"Note: {remark}"
        yield self.reason
        if self.statement:
            yield f"Run: {self.statement}"

    def _header(self) -> Iterator[str]:
        yield (
            f"{self.table}: {counted(self.rows, 'row')} in {counted(self.files, 'file')} "
            f"({size(self.bytes)}); {counted(self.sampled_rows, 'row')} sampled"
        )
        yield (
            f"{counted(self.statements, 'statement')}, {self.reading_statements:,} of which scan "
            f"the table, {counted(self.readings, 'time')} in total"
        )

    def _tables(self) -> Iterator[tuple[str, list[list[str]]]]:
        if self.columns:
            header = ["column", "scans", "=", "range", "IN", "LIKE", "join", "other",
                      "rows left"]  # fmt: skip
            yield "Filtered columns", [header, *(use_row(use) for use in self.columns)]
        if self.readings:
            layouts = [*self.layouts[:SHOWN], *self.sorted_layouts[:1], self.present_indexed]
            if self.present.bytes_opened != self.present_indexed.bytes_opened:
                layouts.append(self.present)
            rows = [
                [o.name, size(o.bytes_opened), percent(o.share_of_present), f"{o.growth:.2f}"]
                for o in layouts
            ]
            header = ["layout", "average", "of today's", "table size"]
            yield "Size of the files opened per scan", [header, *rows]
        if self.left_out:
            rows = [[str(item.count), item.reason, item.example[:60]] for item in self.left_out]
            yield "Not used", [["count", "what", "example"], *rows]


def use_row(use: ColumnUse) -> list[str]:
    """Returns a column's row in the table of column uses."""
    counts = (use.readings, use.equality, use.range, use.in_list, use.prefix, use.join, use.other)
    cells = (str(count) if count else "" for count in counts)
    return [use.column, *cells, percent(use.rows_left)]


def text_rows(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields the lines of a text table. Numbers are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = [all(is_number(cell) for cell in column[1:]) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, right, strict=True)
        )
        yield ("  " + "  ".join(cells)).rstrip()


def html_rows(rows: Iterable[Sequence[str]]) -> str:
    """Returns the rows as HTML."""
    header, *body = rows
    lines = [f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in header)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in body]
    return "".join(lines)


def is_number(cell: str) -> bool:
    """Whether a cell is empty or looks like a number."""
    return cell == "" or cell == "–" or cell[0].isdigit() or cell[0] == "<"
