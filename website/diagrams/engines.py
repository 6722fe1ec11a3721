"""Draws docs/engines.svg, a comparison of the files that different readers skip."""

from __future__ import annotations

from typing import NamedTuple

from website.diagrams import skipping
from website.diagrams.svg import ACCENT, LEFT, LETTER, PALE, PLAIN, RIGHT, SMALL, Drawing


class Reader(NamedTuple):
    """A way to read a table.

    Attributes:
        name: the engine.
        code: the code or the command that reads the table.
        needs: what the reader needs to evaluate the condition on the index.
        skips: whether the reader skips files.
    """

    name: str
    code: str
    needs: str
    skips: bool


READERS = [
    Reader("Spark", "SELECT … FROM sales WHERE …", "pyzorder's extension", True),
    Reader("Any tool", "pyzorder files sales --where …", "the condition in SQL", True),
    Reader("PyArrow, DuckDB", "pyzorder.dataset(path)", "filters that it pushes down", True),
    Reader("Polars", "pyzorder.scan_polars(path)", "filters that it pushes down", True),
    Reader("Any engine", "the folder's files", "nothing: it does not use the index", False),
]

_ROW, _FILES = 78, 236


def draw() -> str:
    """Returns the diagram as an SVG."""
    drawing, kept = Drawing(), skipping.selected()
    for i, line in enumerate(skipping.query()[1:]):
        x = LEFT + 10 + SMALL * LETTER * (len(line) - len(line.lstrip()))
        drawing.text(x, 28 + 17 * i, line.lstrip(), SMALL, code=True)
    top = 28 + 17 * len(skipping.query()) - 10
    for i, reader in enumerate(READERS):
        _reader(drawing, top + (_ROW + 8) * i, reader, kept)
    height = top + (_ROW + 8) * len(READERS) + 4
    return drawing.svg(height, "Which readers skip files", described(kept))


def opened(reader: Reader, kept: set[str]) -> set[str]:
    """Returns the files that a reader opens."""
    return kept if reader.skips else {entry.path for entry in skipping.INDEX}


def described(kept: set[str]) -> str:
    """Returns the diagram's description for screen readers."""
    lines = [
        f"{r.name}, with {r.code}: opens {len(opened(r, kept))} of {len(skipping.INDEX)} files."
        for r in READERS
    ]
    return f"The condition is {skipping.predicate()}. {' '.join(lines)}"


def _reader(drawing: Drawing, y: float, reader: Reader, kept: set[str]) -> None:
    drawing.card(y, _ROW)
    drawing.text(LEFT + 10, y + 22, reader.name, bold=True)
    drawing.text(LEFT + 10, y + 44, reader.code, SMALL, code=True)
    drawing.text(LEFT + 10, y + 66, reader.needs, SMALL, opacity=PALE)
    own = opened(reader, kept)
    share = (RIGHT - 10 - _FILES) / len(skipping.INDEX)
    for i, entry in enumerate(skipping.INDEX):
        look = ACCENT if entry.path in own else PLAIN
        drawing.file(_FILES + share * (i + 0.5) - 7, y + 9, 14, 18, look)
    said = f"opens {len(own)} of {len(skipping.INDEX)}"
    drawing.text(RIGHT - 10, y + 66, said, SMALL, bold=True, anchor="end")
