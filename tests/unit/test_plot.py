"""The picture of a layout: which files a lookup opens, and that a PNG comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyzorder.plot import Panel, save_layouts

NAN = float("nan")
FILES = [(0.0, 5.0, 0.0, 9.0), (6.0, 9.0, 0.0, 4.0), (6.0, 9.0, 5.0, 9.0), (NAN, NAN, 0.0, 1.0)]


@pytest.mark.parametrize(
    ("column", "value", "opened"),
    [
        (0, 5, [True, False, False, False]),
        (0, 6, [False, True, True, False]),
        (0, 5.5, [False, False, False, False]),
        (1, 9, [True, False, True, False]),
        (1, 0, [True, True, False, True]),
    ],
)
def test_opened(column: int, value: float, opened: list[bool]) -> None:
    assert Panel("any", FILES, column, value).opened() == opened


def test_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "new folder" / "layout.png"
    save_layouts([Panel("before", FILES, 0, 5), Panel("after", FILES, 1, 0)], ("a", "b"), path)
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
