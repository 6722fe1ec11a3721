"""Draws docs/select.svg, which shows how a SELECT skips files.

The filter in the diagram comes from sql/skipping. DuckDB determines which files are kept, by
evaluating the filter from `pyzorder.index.predicates` on the index.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import NamedTuple

import duckdb

from pyzorder.index.predicates.conditions import parse
from pyzorder.index.predicates.index_filters import IndexFilters
from pyzorder.index.predicates.monotonic_functions import Found, Types
from pyzorder.pictures.palette import BOX, OPENED
from website.diagrams.svg import (
    ACCENT,
    LARGE,
    LEFT,
    LETTER,
    PALE,
    PLAIN,
    RIGHT,
    SMALL,
    WIDTH,
    Drawing,
)

Range = tuple[int, int]


class Entry(NamedTuple):
    """A file's row in the index, with a range of days in March 2024 and a range of stores. A range
    is None if all values are null."""

    path: str
    day: Range
    day_nulls: int
    store: Range | None
    store_nulls: int


ROWS = 1000
"""The number of rows in each file."""

INDEX = (
    Entry("part-0", (1, 6), 0, (1, 4), 12),
    Entry("part-1", (1, 3), 0, (5, 7), 0),
    Entry("part-2", (4, 6), 0, (5, 7), 0),
    Entry("part-3", (1, 4), 0, (8, 12), 0),
    Entry("part-4", (5, 12), 0, (8, 12), 0),
    Entry("part-5", (7, 12), 0, (1, 7), 0),
    Entry("part-6", (1, 12), 0, None, ROWS),
)

DAYS, STORE = (5, 8), 7
"""The days and the store that the query selects."""

#: The first and the last value on the axes of the bars.
AXIS = (1, 12)

_RULES = Path(__file__).parents[2] / "sql" / "skipping" / "comparisons.txt"


def day(number: int) -> str:
    """Returns the date of a day in March 2024."""
    return date(2024, 3, number).isoformat()


def predicate() -> str:
    """Returns the query's predicate."""
    return f"day BETWEEN DATE'{day(DAYS[0])}' AND DATE'{day(DAYS[1])}' AND store = {STORE}"


def conditions() -> list[str]:
    """Returns the conjuncts of the index filter in the form that EXPLAIN shows."""
    first, last = (f"DATE '{day(end)}'" for end in DAYS)
    between = _rule("i BETWEEN 3 AND 5", "day", {"3": first, "5": last})
    return between + _rule("i = 5", "store", {"5": str(STORE)})


def _rule(example: str, column: str, constants: dict[str, str]) -> list[str]:
    """Returns the filter from a line of sql/skipping, with its column and constants replaced."""
    lines = _RULES.read_text(encoding="utf-8").splitlines()
    (given,) = (line.split(" | ")[1] for line in lines if line.startswith(f"{example} | "))
    parts = re.sub(r"[()]", "", given).replace("i_", f"{column}_").split(" AND ")
    return [re.sub(r"\b\d+$", lambda found: constants[found[0]], part) for part in parts]


def selected() -> set[str]:
    """Returns the files that may have a matching row. The Python package determines them."""
    columns = ("day", "store")

    def find(parts: tuple[str, ...]) -> Found:
        return Found(columns.index(parts[-1]), parts[-1])

    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE scan(day DATE, store INTEGER)")
        engine.execute("INSERT INTO scan VALUES (NULL, NULL)")

        def types(texts: list[str]) -> list[str]:
            (found,) = engine.sql(f"SELECT {', '.join(texts)} FROM scan").types
            return ["int" if found == "INTEGER" else str(found).lower()]

        kept = IndexFilters(find, Types(types, "UTC", date_is_string=False)).of(parse(predicate()))
        engine.execute(_STATISTICS)
        engine.executemany("INSERT INTO index_rows VALUES (?, ?, ?, ?, ?, ?, ?)", index_rows())
        return {path for (path,) in engine.sql(f"{_FLAGS} WHERE {kept}").fetchall()}


def index_rows() -> list[tuple[str | int | None, ...]]:
    """Returns the rows of the index: a path, then the minimum, maximum and null count of each
    column."""
    return [
        (e.path, *map(day, e.day), e.day_nulls, *(e.store or (None, None)), e.store_nulls)
        for e in INDEX
    ]


_STATISTICS = """CREATE TABLE index_rows(
    path TEXT, m0 DATE, x0 DATE, nulls0 INTEGER, m1 INTEGER, x1 INTEGER, nulls1 INTEGER)"""

#: The columns that filters refer to. See predicates.bound_filters.
_FLAGS = "SELECT path FROM (SELECT *, {} FROM index_rows)".format(
    ", ".join(
        f"m{i} IS NOT NULL AS b{i}, nulls{i} = {ROWS} AS e{i}, false AS q{i}, "
        f"nulls{i} > 0 AS u{i}, nulls{i} < {ROWS} AS v{i}, true AS w{i}"
        for i in (0, 1)
    )
)

# ---- drawn --------------------------------------------------------------------------------------

#: For each column of the query: the x coordinates between which its bounds are drawn, and the x
#: coordinate of the right edge of its null counts.
_DAY, _DAY_NULLS = (80, 246), 286
_STORE, _STORE_NULLS = (306, 374), RIGHT - 8

_ROW = 36


def draw() -> str:
    """Returns the diagram as an SVG."""
    drawing, kept = Drawing(), selected()
    bottom = _code(drawing, 12, query())
    drawing.step(bottom, "A rule turns WHERE into a filter over the index")
    bottom = _code(drawing, bottom + 32, filter_lines())
    drawing.step(bottom, f"The index: one row for each file of {ROWS} records")
    bottom = _table(drawing, bottom + 32, kept)
    drawing.step(bottom, "Spark opens only the files that can match")
    bottom = _files(drawing, bottom + 32, kept)
    return drawing.svg(bottom + 12, f"A SELECT that {opens(kept)}", described(kept))


def opens(kept: set[str]) -> str:
    """Returns a phrase with the number of files that the query opens."""
    return f"opens {len(kept)} of {len(INDEX)} files"


def described(kept: set[str]) -> str:
    """Returns the diagram's description for screen readers."""
    return (
        f"The predicate {predicate()} becomes a filter over the index: "
        f"{' AND '.join(conditions())}. The index has the minimum, the maximum and the null count "
        f"of both columns for each of {len(INDEX)} files. The filter is true for "
        f"{' and '.join(sorted(kept))}, which Spark opens; the others are skipped."
    )


def query() -> list[str]:
    """Returns the lines of the query."""
    first, last = (f"DATE'{day(end)}'" for end in DAYS)
    return [
        "SELECT sum(amount) FROM sales",
        f"WHERE day BETWEEN {first}",
        f"              AND {last}",
        f"  AND store = {STORE}",
    ]


def filter_lines() -> list[str]:
    """Returns the lines of the index filter."""
    return [f"{'AND ' if i else ''}{part}" for i, part in enumerate(conditions())]


def _code(drawing: Drawing, y: float, lines: list[str]) -> float:
    """Draws code in a frame, and returns the y coordinate of the frame's bottom."""
    height = 14 + 17 * len(lines)
    drawing.card(y, height)
    for i, line in enumerate(lines):
        x = LEFT + 10 + SMALL * LETTER * (len(line) - len(line.lstrip()))
        drawing.text(x, y + 20 + 17 * i, line.lstrip(), SMALL, code=True)
    return y + height


def _table(drawing: Drawing, y: float, kept: set[str]) -> float:
    """Draws the index, with bounds as text and as bars, and the query's range behind the bars."""
    top, bottom = y + 44, y + 44 + _ROW * len(INDEX)
    for i, entry in enumerate(INDEX):
        if entry.path in kept:
            drawing.box(LEFT, top + _ROW * i, RIGHT - LEFT, _ROW, OPENED, opacity=0.16)
    drawing.card(y, bottom - y)
    drawing.text(LEFT + 10, y + 36, "file", SMALL, opacity=PALE)
    for (left, right), nulls, name in ((_DAY, _DAY_NULLS, "day"), (_STORE, _STORE_NULLS, "store")):
        drawing.text((left + right) / 2, y + 18, name, bold=True, anchor="middle")
        drawing.text(left, y + 36, "min", SMALL, opacity=PALE)
        drawing.text(right, y + 36, "max", SMALL, anchor="end", opacity=PALE)
        drawing.text(nulls, y + 36, "nulls", SMALL, anchor="end", opacity=PALE)
    middle = sum(_span(DAYS, _DAY)) / 2
    drawing.text(middle, y + 36, "query", SMALL, bold=True, anchor="middle", color=BOX)
    for i, entry in enumerate(INDEX):
        _row(drawing, top + _ROW * i, entry, entry.path in kept)
    return bottom


def _row(drawing: Drawing, y: float, entry: Entry, kept: bool) -> None:
    opacity = 1 if kept else PALE
    drawing.line(LEFT, y, RIGHT, y)
    drawing.text(LEFT + 10, y + 22, entry.path, SMALL, True, kept, opacity=opacity)
    for bounds, sought, nulls, cell, right, spelled in (
        (entry.day, DAYS, entry.day_nulls, _DAY, _DAY_NULLS, day),
        (entry.store, (STORE, STORE), entry.store_nulls, _STORE, _STORE_NULLS, str),
    ):
        texts = [spelled(end) for end in bounds] if bounds else ["–", "–"]
        drawing.text(cell[0], y + 17, texts[0], SMALL, True, opacity=opacity)
        drawing.text(cell[1], y + 17, texts[1], SMALL, True, anchor="end", opacity=opacity)
        drawing.text(right, y + 17, str(nulls), SMALL, True, anchor="end", opacity=opacity)
        drawing.line(cell[0], y + 27, cell[1], y + 27)
        left, end = _span(sought, cell)
        drawing.box(left, y + 21, end - left, 12, BOX, opacity=0.35)
        if bounds:
            left, end = _span(bounds, cell)
            face, edge = ACCENT if kept else PLAIN
            drawing.box(left + 1, y + 24, end - left - 2, 6, face, edge, radius=2)


def _span(bounds: Range, cell: tuple[float, float]) -> tuple[float, float]:
    """Returns both ends of a range's bar. Each value takes up an equal share of the axis."""
    share = (cell[1] - cell[0]) / (AXIS[1] - AXIS[0] + 1)
    return cell[0] + share * (bounds[0] - AXIS[0]), cell[0] + share * (bounds[1] + 1 - AXIS[0])


def _files(drawing: Drawing, y: float, kept: set[str]) -> float:
    """Draws all files, with the number of opened files below them."""
    share = (RIGHT - LEFT) / len(INDEX)
    for i, entry in enumerate(INDEX):
        x, is_kept = LEFT + share * (i + 0.5), entry.path in kept
        drawing.file(x - 13, y + 2, 26, 32, ACCENT if is_kept else PLAIN)
        drawing.text(x, y + 50, entry.path, SMALL, True, is_kept, "middle", 1 if is_kept else PALE)
    drawing.text(WIDTH / 2, y + 78, opens(kept), LARGE, bold=True, anchor="middle")
    return y + 82
