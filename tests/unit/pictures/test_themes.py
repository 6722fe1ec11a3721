"""Pictures adapt to light and dark mode."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from matplotlib.patches import Rectangle

import pyzorder
from pyzorder.pictures import palette
from pyzorder.pictures.picture import canvas
from pyzorder.pictures.themes import themed_svg


def test_a_picture_has_other_colors_on_dark_pages() -> None:
    picture = canvas(2, 2)
    picture.add_artist(Rectangle((0, 0), 1, 1, facecolor=palette.FILE, edgecolor=palette.FILE_EDGE))
    svg = themed_svg(picture)
    assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert f"fill: var(--file, {palette.FILE})" in svg
    (dark,) = re.findall(r"prefers-color-scheme: dark\) { svg { (.*?) } }", svg)
    assert f"--file: {palette.DARK[palette.FILE]}" in dark.split("; ")


def test_dark_colors_are_those_of_reports() -> None:
    folder = Path(pyzorder.__file__).parent / "templates"
    text = (folder / "page.html").read_text(encoding="utf-8")
    light, dark = text.split("@media (prefers-color-scheme: dark)")
    for color, variable in palette.VARIABLES.items():
        wanted = palette.DARK.get(color, color)
        said = [re.findall(rf"{variable}: ([^;]+);", text) for text in (dark, light)]
        assert (said[0] or said[1]) == [wanted]
