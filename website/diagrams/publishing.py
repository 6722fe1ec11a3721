"""Draws docs/optimize.svg, which shows what OPTIMIZE does to a table's folder.

Each stage comes from a case in sql/journal/stages.json. The tests run these cases on the journal
readers in the jar and in the Python package, so they also check what the diagram says about
readers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyzorder.index.visible_files import is_hidden
from website.diagrams.svg import (
    ACCENT,
    LEFT,
    LETTER,
    PALE,
    PLAIN,
    RIGHT,
    SMALL,
    TITLE,
    Drawing,
    Look,
)

_CASES = Path(__file__).parents[2] / "sql" / "journal" / "stages.json"

NEW = "new"
"""The prefix of new files' names in these cases."""


@dataclass(frozen=True)
class Stage:
    """
    A table's folder at one moment.

    title     the step that led to this state
    record    path and name of the journal's last record, or None if there is none
    files     paths of data files, including staged and retired ones
    visible   names of the files that a reader with pyzorder reads
    """

    title: str
    record: tuple[str, str] | None
    files: list[str]
    visible: list[str]

    @property
    def listed(self) -> list[str]:
        """Names of the files that a reader without pyzorder reads."""
        return [file for file in self.files if not is_hidden(file)]


def stages() -> list[Stage]:
    """Returns all stages in order, from plain files to VACUUM."""
    done = _stage("The new file moves into place", "done")
    kept = [file for file in done.files if "/_retired/" not in file]
    return [
        _stage("Before: plain files", "no journal"),
        _stage("OPTIMIZE stages the new file", "staged"),
        _stage("One record commits the new file", "commit"),
        done,
        Stage("A week later, VACUUM deletes the old files", None, kept, done.visible),
    ]


def _stage(title: str, name: str) -> Stage:
    (case,) = (c for c in json.loads(_CASES.read_text(encoding="utf-8")) if c["name"] == name)
    files = [file for file in case["files"] if file.endswith((".parquet", ".staged", ".retired"))]
    return Stage(title, _last(case["records"]), files, case["visible"])


def _last(records: dict[str, Any]) -> tuple[str, str] | None:
    """Returns the path of the last record, and the record's name in the documentation."""
    if not records:
        return None
    name, record = list(records.items())[-1]
    return f"_zorder/_journal/{name}", record.get("outcome", name.partition(".")[2].upper())


def name_of(path: str) -> str:
    """Returns a data file's name in the table, even if the file is staged or retired."""
    if not is_hidden(path):
        return path
    return Path(path).stem.removeprefix("_")


# ---- drawn --------------------------------------------------------------------------------------

_LINE, _GAP = 22, 14


def draw() -> str:
    """Returns the diagram as an SVG."""
    drawing, y = Drawing(), 12.0
    for number, stage in enumerate(stages(), 1):
        y = _card(drawing, y, number, stage) + _GAP
    bottom = _legend(drawing, y)
    return drawing.svg(bottom, "A table's folder while OPTIMIZE runs", described())


def described() -> str:
    """Returns the diagram's description for screen readers."""
    parts = []
    for number, stage in enumerate(stages(), 1):
        record = f" and the record {stage.record[0]} ({stage.record[1]})" if stage.record else ""
        parts.append(
            f"{number}. {stage.title}. The folder contains {', '.join(stage.files)}{record}. "
            f"Readers with pyzorder read {' and '.join(stage.visible)}. "
            f"Readers without pyzorder read {' and '.join(stage.listed)}."
        )
    return " ".join(parts)


def _card(drawing: Drawing, y: float, number: int, stage: Stage) -> float:
    """Draws a stage in a frame, and returns the y coordinate of the frame's bottom."""
    lines = len(stage.files) + bool(stage.record)
    height = 34 + _LINE * lines + 40
    drawing.card(y, height)
    drawing.text(LEFT + 14, y + 23, str(number), TITLE, opacity=PALE)
    drawing.text(LEFT + 36, y + 23, stage.title, TITLE, bold=True)
    below = y + 34
    for file in stage.files:
        _file(drawing, below, file, name_of(file) in stage.visible)
        below += _LINE
    if stage.record:
        path, called = stage.record
        drawing.text(LEFT + 36, below + 16, path, SMALL, True, opacity=PALE)
        drawing.text(RIGHT - 12, below + 16, called, SMALL, bold=True, anchor="end")
        below += _LINE
    drawing.line(LEFT + 12, below + 7, RIGHT - 12, below + 7)
    _readers(drawing, LEFT + 12, LEFT + 140, below + 26, "Read with pyzorder", stage.visible)
    end = _readers(drawing, LEFT + 236, LEFT + 302, below + 26, "without", stage.listed)
    if stage.visible != stage.listed:
        drawing.text(end, below + 26, "briefly", SMALL, opacity=PALE)
    return y + height


def _file(drawing: Drawing, y: float, path: str, is_read: bool) -> None:
    drawing.file(LEFT + 14, y + 3, 12, 15, look(name_of(path)), is_read)
    drawing.text(LEFT + 36, y + 16, path, SMALL, True, opacity=1 if is_read else PALE)


def look(name: str) -> Look:
    """Returns the fill and edge colors of a file. New files have different colors."""
    return ACCENT if name.startswith(NEW) else PLAIN


def _readers(
    drawing: Drawing, x: float, names_x: float, y: float, kind: str, names: list[str]
) -> float:
    """Draws the names of the files that one kind of reader sees, without their extensions. Returns
    the x coordinate after them."""
    drawing.text(x, y, kind, SMALL, opacity=PALE)
    for name in names:
        stem, (face, edge) = Path(name).stem, look(name)
        width = SMALL * LETTER * len(stem) + 12
        drawing.box(names_x, y - 14, width, 19, face, edge, radius=4, opacity=0.35)
        drawing.text(names_x + width / 2, y, stem, SMALL, True, anchor="middle")
        names_x += width + 6
    return names_x


def _legend(drawing: Drawing, y: float) -> float:
    for x, looks, filled, words in (
        (LEFT + 2, PLAIN, True, "old file"),
        (LEFT + 92, ACCENT, True, "new file"),
        (LEFT + 190, PLAIN, False, "not read with pyzorder"),
    ):
        drawing.file(x, y, 12, 15, looks, filled)
        drawing.text(x + 18, y + 12, words, SMALL, opacity=PALE)
    return y + 26
