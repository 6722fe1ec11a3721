"""When a notebook shows results as a table, text in the results is not interpreted as HTML."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from pyzorder.text import html_table


class Texts(HTMLParser):
    """Collects the tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "a & b", '"quoted"', "&lt;", "größe"]
)
def test_texts_are_escaped(text: str) -> None:
    page = Texts(html_table.table(text, [text], [[text]]))
    assert page.texts == [text] * 3
    assert page.tags == ["table", "caption", "thead", "tr", "th", "tbody", "tr", "td"]


@pytest.mark.parametrize(
    ("value", "texts", "side"),
    [
        (1234567, ["1,234,567"], "right"),
        (None, [], "left"),
        (0.5, ["0.5"], "left"),
        (0, ["0"], "right"),
    ],
)
def test_cells(value: Any, texts: list[str], side: str) -> None:
    cell = html_table.cell(value)
    assert Texts(cell).texts == texts and f"text-align: {side}" in cell
