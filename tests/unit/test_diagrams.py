"""The diagrams in docs/ are up to date, show what the code does, and are legible."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

import pyzorder
from pyzorder.index import LocalStore, TableFolder, visible_files
from tests.support.documents import PAGES, ROOT, text
from tests.support.engine_tables import make
from tests.support.journal_vectors import Vector, vectors
from website.diagrams import DRAWN, publishing, skipping
from website.diagrams.svg import WIDTH

SVG = "{http://www.w3.org/2000/svg}"

drawn = pytest.mark.parametrize("draw", DRAWN.values(), ids=[path.stem for path in DRAWN])


@pytest.mark.parametrize(("path", "draw"), DRAWN.items(), ids=[path.stem for path in DRAWN])
def test_the_committed_picture_is_what_is_drawn(path: Path, draw: Callable[[], str]) -> None:
    assert path.read_text(encoding="utf-8") == draw(), "run `make diagrams`"


# ---- content ------------------------------------------------------------------------------------


def test_the_filter_that_is_shown_keeps_the_files_that_are_shown() -> None:
    """In the diagram of data skipping, the kept files are those that the displayed index filter
    selects."""
    names = "path, day_minValue, day_maxValue, day_num_nulls, store_minValue, store_maxValue, store_num_nulls"
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE s(path TEXT, a DATE, b DATE, c INT, d INT, e INT, f INT)")
        engine.executemany("INSERT INTO s VALUES (?, ?, ?, ?, ?, ?, ?)", skipping.index_rows())
        rows = f"(SELECT *, {skipping.ROWS} AS num_records FROM s) AS t({names}, num_records)"
        found = engine.sql(f"SELECT path FROM {rows} WHERE {' '.join(skipping.filter_lines())}")
        assert {path for (path,) in found.fetchall()} == skipping.selected()


def test_the_query_that_is_shown_is_the_one_that_is_judged() -> None:
    shown = " ".join(" ".join(skipping.query()).split())
    assert shown.endswith(f"FROM sales WHERE {skipping.predicate()}")
    assert f">{skipping.opens(skipping.selected())}<" in skipping.draw()
    assert skipping.opens(skipping.selected()) == "opens 2 of 7 files"


def test_files_are_opened_if_both_columns_can_match() -> None:
    """In the diagram of data skipping, a file is opened if and only if both columns have a matching
    value in their ranges."""
    (first, last), store = skipping.DAYS, skipping.STORE
    for entry in skipping.INDEX:
        days = range(entry.day[0], entry.day[1] + 1)
        stores = range(entry.store[0], entry.store[1] + 1) if entry.store else []
        matches = any(first <= d <= last for d in days) and store in stores
        assert (entry.path in skipping.selected()) == matches


@pytest.mark.parametrize("number", range(len(publishing.stages())))
def test_readers_see_what_a_stage_says(tmp_path: Path, number: int) -> None:
    """At each stage of the publishing diagram, readers see the files that are shown as visible.
    sql/journal has no case for the stage after VACUUM."""
    stage = publishing.stages()[number]
    last = Path(stage.record[0]).name if stage.record else "_1.done" if number else ""
    names = ["_1.prepare", "_1.retire", "_1.outcome", "_1.done"]
    (done,) = (vector for vector in vectors() if vector.name == "done")
    kept = {name: done.records[name] for name in names[: names.index(last) + 1]} if last else {}
    files = [*stage.files, "_zorder.1.life"]
    Vector("", "", kept, files, [], []).make(tmp_path / "t")
    seen = visible_files(LocalStore(), TableFolder(str(tmp_path / "t")))
    assert [file.path for file in seen] == stage.visible
    assert sorted(path.name for path in (tmp_path / "t").glob("*.parquet")) == stage.listed


def test_names_of_stages_are_those_of_the_layout() -> None:
    folder = TableFolder("t")
    (staged,) = (f for f in publishing.stages()[1].files if f.endswith(".staged"))
    assert f"t/{staged}" == folder.staged(1, "new.parquet")
    retired = [f for f in publishing.stages()[3].files if f.endswith(".retired")]
    assert [f"t/{f}" for f in retired] == [folder.retired(1, f"{n}.parquet") for n in "ab"]
    assert [publishing.name_of(file) for file in [staged, *retired]] == [
        "new.parquet", "a.parquet", "b.parquet",
    ]  # fmt: skip


def test_the_readers_that_are_shown_open_the_files_that_are_shown(tmp_path: Path) -> None:
    """`pyzorder.files` and `pyzorder.dataset` select the files that the diagram of data skipping
    shows as opened. The test creates the files first."""
    files = {
        f"{entry.path}.parquet": pa.table({
            "day": pa.array([*map(skipping.day, entry.day)]).cast(pa.date32()),
            "store": pa.array([*(entry.store or (None, None))], pa.int32()),
        })
        for entry in skipping.INDEX
    }  # fmt: skip
    table = make(tmp_path, files)
    by_files = {Path(path).stem for path in pyzorder.files(table, skipping.predicate())}
    days = [pa.scalar(skipping.day(end)).cast(pa.date32()) for end in skipping.DAYS]
    day, store = pc.field("day"), pc.field("store")
    wanted = (day >= days[0]) & (day <= days[1]) & (store == skipping.STORE)
    by_arrow = {Path(f.path).stem for f in pyzorder.dataset(table).get_fragments(wanted)}
    assert by_files == by_arrow == skipping.selected()


# ---- appearance ---------------------------------------------------------------------------------


class Place(NamedTuple):
    """A label and its bounding box in DejaVu Sans. This font is wider than most fonts."""

    text: str
    size: float
    left: float
    right: float
    top: float
    bottom: float


def places(svg: str) -> list[Place]:
    """All labels in a diagram, with their positions in DejaVu fonts."""
    found = []
    for element in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        style = dict(part.split(": ", 1) for part in element.attrib["style"].split("; "))
        font = FontProperties(
            family="DejaVu Sans Mono" if "mono" in style["font-family"] else "DejaVu Sans",
            weight="bold" if style["font-weight"] == "600" else "normal",
        )
        size, words = float(style["font-size"].removesuffix("px")), element.text or ""
        width = TextPath((0, 0), words, size=size, prop=font).get_extents().width
        left = float(element.attrib["x"])
        left -= {"start": 0.0, "middle": width / 2, "end": width}[style["text-anchor"]]
        y = float(element.attrib["y"])
        found.append(Place(words, size, left, left + width, y - 0.75 * size, y + 0.25 * size))
    return found


@drawn
def test_texts_fit(draw: Callable[[], str]) -> None:
    """The labels of a diagram are within its margins and do not overlap."""
    texts = places(draw())
    assert len(texts) > 20
    assert [t for t in texts if t.left < 14 or t.right > WIDTH - 14] == []
    assert [
        (a.text, b.text)
        for a, b in combinations(texts, 2)
        if min(a.right, b.right) - max(a.left, b.left) > -3
        and min(a.bottom, b.bottom) - max(a.top, b.top) > 0
    ] == []


@drawn
def test_texts_are_legible_on_a_phone(draw: Callable[[], str]) -> None:
    svg = draw()
    assert f'viewBox="0 0 {WIDTH} ' in svg
    assert min(place.size for place in places(svg)) * 400 / WIDTH > 11


@drawn
def test_colors_are_from_the_palette(draw: Callable[[], str]) -> None:
    """Diagrams use only colors from the palette, because only these colors have counterparts for
    dark mode."""
    svg = draw()
    assert "prefers-color-scheme: dark" in svg
    colors = re.findall(r"(?:fill|stroke): ([^;\"]+)", svg)
    assert {c for c in colors if not c.startswith("var(--")} == {"none"}


@drawn
def test_screen_readers_find_a_title_and_a_description(draw: Callable[[], str]) -> None:
    root = ElementTree.fromstring(draw())
    assert root.attrib["aria-labelledby"] == "title description"
    assert [child.attrib.get("id") for child in list(root)[1:3]] == ["title", "description"]
    assert all(child.text for child in list(root)[1:3])


@pytest.mark.parametrize("path", DRAWN, ids=[path.stem for path in DRAWN])
def test_a_page_shows_it_with_an_alternative_text(path: Path) -> None:
    name = re.escape(path.name)
    shown = [
        alternative
        for page in PAGES
        for alternative in re.findall(rf"!\[([^]]+)\]\([^)]*{name}\)", text(page))
    ]
    assert shown and all(len(alternative) > 100 for alternative in shown)
    assert path.is_relative_to(ROOT / "docs")
