"""Pictures show the right counts and values. The tests read them back from the drawn elements."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex

from pyzorder.layout import Layout
from pyzorder.pictures import drawing, palette
from pyzorder.pictures.picture import Picture
from tests.support.layouts import GRID, layout


def faces(picture: Picture, color: str) -> int:
    """The number of rectangles with the given fill color."""
    found = [c for axes in picture.axes for c in axes.collections if isinstance(c, PolyCollection)]
    filled = [c for c in found if len(c.get_facecolor()) and to_hex(c.get_facecolor()[0]) == color]
    return sum(len(c.get_paths()) for c in filled)


# (files, indexes of the highlighted files, whether axes show ranks)
DRAWN: list[tuple[Layout, set[int], bool]] = [
    (GRID, set(), False),
    (GRID, {1, 4}, False),
    (GRID, {1, 4}, True),
    (GRID, set(range(6)), False),
    (GRID.only(0), {0, 5}, False),
    (layout([((1, 1), (5, 5)), ((), (0, 9)), (None, (0, 9))]), {0, 1, 2}, False),
    (layout([((-np.inf, 1.0),), ((2.0, np.inf),)], [("a", "DOUBLE")]), {1}, False),
    (
        layout([(("a", "b"), ("", "z")), (("b", "č"), ("x", "y"))], [("s", "STRING")] * 2),
        {0},
        False,
    ),
    (layout([((False, True),)], [("f", "BOOLEAN")]), set(), False),
    (layout([((Decimal("-1.5"), Decimal("9")),)], [("d", "DECIMAL(38,2)")]), {0}, True),
    (layout([((-(2**40), 2**60),)], [("far", "TIMESTAMP")]), {0}, False),
    (layout([((-10, 300),)], [("y", "INTERVAL YEAR TO MONTH")]), set(), False),
    (layout([(("00ff", "01"),)], [("x", "BINARY")]), set(), False),
    (layout([]), set(), False),
]


@pytest.mark.parametrize(("files", "lit", "ranks"), DRAWN)
def test_every_file_with_bounds_is_drawn(files: Layout, lit: set[int], ranks: bool) -> None:
    opened = frozenset(f"file:/t/{i}" for i in lit)
    asked = Layout(**{**vars(files), "where": "…", "opened": opened}) if lit else files
    picture = drawing.draw_rectangles({"t": asked}, ranks)
    whole = [i for i, file in enumerate(files.files) if None not in file.bounds]
    assert faces(picture, palette.OPENED) == len(lit.intersection(whole))
    assert faces(picture, palette.FILE) == len(whole) - len(lit.intersection(whole))
    assert picture._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"
    ElementTree.fromstring(picture._repr_svg_())


def test_of_too_many_files_the_opened_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MOST_FILES", 20)
    opened = frozenset(f"file:/t/{i}" for i in (7, 8, 9))
    files = layout([((i, i + 1), (0, 1)) for i in range(100)], where="…", opened=opened)
    picture = drawing.draw_rectangles({"t": files}, False)
    assert faces(picture, palette.OPENED) == 3
    assert 10 <= faces(picture, palette.FILE) <= 17
    left_out = 100 - 3 - faces(picture, palette.FILE)
    note = f"Not drawn: {left_out} files, because at most 20 are drawn."
    assert drawing.notes(files) == [note]


# (ranges, the distance between adjacent values, or 0 if values are continuous)
DEPTHS: list[tuple[list[tuple[float, float]], float]] = [
    ([(0, 4), (5, 9)], 1),
    ([(0, 4), (5, 9)], 0),
    ([(0, 5), (5, 9), (5, 5)], 0),
    ([(0, 9), (2, 3), (3, 7)], 1),
    ([(0, 9), (0, 9), (0, 9), (4, 4)], 0),
    ([], 0),
]


@pytest.mark.parametrize(("ranges", "step"), DEPTHS)
def test_depths(ranges: list[tuple[float, float]], step: float) -> None:
    """The depth at each value is the number of ranges that contain it."""
    x, y = drawing.depths(np.array(ranges, dtype=float).reshape(-1, 2), step)
    drawn = dict(zip(x[1:-1:3], y[1:-1:3], strict=True)) if not step else {}
    for value in np.arange(-1, 10, 0.25 if not step else 1):
        covering = sum(low <= value <= high for low, high in ranges)
        place = int(np.searchsorted(x, value, side="right")) - 1
        seen = drawn.get(value, 0.0 if place < 0 else y[place])
        assert seen == covering, value


def test_notes_of_several_panels() -> None:
    hidden = layout([((1, 2), None)])
    (note,) = hidden.notes()
    assert drawing.noted({"before": GRID, "after": hidden}) == [f"after: {note}"]
    assert drawing.noted({"now": hidden}) == [note]


def stored(unindexed: set[int], opened: set[int] | None, **more: Any) -> Layout:
    """A grid layout. Some files are not indexed, and a query opens some of the files."""
    files = [replace(f, indexed=i not in unindexed) for i, f in enumerate(GRID.files)]
    lit = None if opened is None else frozenset(f"file:/t/{i}" for i in opened)
    return replace(GRID, files=tuple(files), opened=lit, **more)


BOX = ((1, 5), (None, None))

# (the files and a query, the labels in the legend)
LEGENDS = [
    (stored(set(), None), []),
    (stored({1}, None), ["indexed", "unindexed"]),
    (stored(set(range(6)), None), ["unindexed"]),
    (stored(set(), {1, 2}), ["opened", "not opened"]),
    (stored(set(), set(range(6))), ["opened"]),
    (
        stored({1}, {0, 1}, box=BOX),
        ["opened", "opened, unindexed", "not opened", "the query"],
    ),
    (stored({1}, {0}), ["opened", "not opened", "not opened, unindexed"]),
    (stored(set(), set(), box=((90, 99), (None, None))), ["not opened"]),
]


@pytest.mark.parametrize(("files", "says"), LEGENDS)
def test_the_legend_shows_what_is_drawn(files: Layout, says: list[str]) -> None:
    picture = drawing.draw_rectangles({"t": files}, False)
    shown = [entry for legend in picture.legends for entry in legend.get_patches()]
    texts = [text.get_text() for legend in picture.legends for text in legend.get_texts()]
    assert texts == says
    drawn = {
        (to_hex(edges.get_edgecolor()[0]), edges.get_linestyle()[0][1] is None)
        for edges in picture.axes[0].collections
        if isinstance(edges, PolyCollection) and len(edges.get_edgecolor())
    }
    looks = {
        (to_hex(patch.get_edgecolor()), patch._dash_pattern[1] is None)  # type: ignore[attr-defined]
        for patch, text in zip(shown, texts, strict=True)
        if text != "the query"
    }
    assert looks == (drawn if says else set())


HOUR = 3_600_000_000

# (type, values in microseconds, tick labels by rank, axis label)
TIMES = [
    ("TIMESTAMP", [0, 40], ["00:00", "00:00:00.000040"], "1970-01-01"),
    ("TIMESTAMP", [0, 24 * HOUR + 1], ["1970-01-01 00:00", "1970-01-02 00:00:00.000001"], ""),
    ("TIMESTAMP_NTZ", [HOUR, 2 * HOUR], ["01:00", "02:00"], "1970-01-01"),
]


@pytest.mark.parametrize(("type_", "values", "ticks", "day"), TIMES)
def test_times_by_rank_are_not_cut(
    type_: str, values: list[int], ticks: list[str], day: str
) -> None:
    files = layout([((values[0], values[1]),)], [("at", type_)])
    (panel,) = drawing.draw_rectangles({"t": files}, True).axes
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ticks
    assert panel.get_xlabel() == "\n".join(["at (by rank)", *([day] if day else [])])


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "$x$ & \\$y$", "a\nb\x01", "数据"])
@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_are_shown_as_they_are(name: str) -> None:
    picture = drawing.draw_rectangles({name: layout([((0, 1),)], [(name, "INT")])}, False)
    root = ElementTree.fromstring(picture._repr_svg_())
    texts = Counter("".join(element.itertext()) for element in root.iter() if "text" in element.tag)
    shown = name.split("\n")[-1].replace("\x01", "\\x01")
    assert texts[shown] == 1 and texts[f"{shown}: 1 file"] == 1
    assert not [element for element in root.iter() if element.tag.endswith("script")]


def test_pictures_are_the_same_each_time() -> None:
    first, second = (drawing.draw_rectangles({"t": GRID}, False) for _ in range(2))
    assert first._repr_svg_() == second._repr_svg_()
