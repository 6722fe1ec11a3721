"""Pictures of layouts are saved as PNG or SVG, and requests that cannot be drawn are rejected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pyzorder import ZOrderError, plot
from tests.support.layouts import GRID, layout

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("name", "bits"), [("peano", 2), ("zorder", 0), ("zorder", 9)])
def test_no_such_curve(name: str, bits: int) -> None:
    with pytest.raises(ValueError, match="curve|bits"):
        plot.curve([name], bits)


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("b.svg", b"<?xml"), ("C.SVG", b"<?xml")]
)
def test_saved_by_suffix(tmp_path: Path, name: str, start: bytes) -> None:
    path = plot.save(plot.curve(["hilbert"]), tmp_path / "new folder" / name)
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["picture.pdf", "picture"])
def test_other_suffixes_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ZOrderError, match=r"\.png or \.svg"):
        plot.save(plot.curve(), tmp_path / name)


def test_only_like_is_compared() -> None:
    with pytest.raises(ValueError, match="same columns"):
        plot.compare({"one": GRID, "other": GRID.only(0)})
    with pytest.raises(ZOrderError, match="ZORDER_RECTANGLE_COLUMNS"):
        plot.compare({"three": layout([], [(name, "INT") for name in "abc"])})


@pytest.mark.parametrize(
    ("package", "module"), [("matplotlib", "pyzorder.plot"), ("jinja2", "pyzorder.report")]
)
def test_what_is_missing_is_named(package: str, module: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (
        "ZORDER_PLOT_MISSING" in done.stderr and "pip install 'pyzorder-spark[plot]'" in done.stderr
    )
