"""Renders results as HTML for notebooks. Text is escaped. The notebook determines the colors."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Renders rows as an HTML table with a caption and a header."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>"
    )


def cell(value: Any) -> str:
    """Renders a cell. Integers are right-aligned, with thousands separators. None is left blank."""
    if isinstance(value, int):
        return f'<td style="text-align: right">{value:,}</td>'
    return f'<td style="text-align: left">{"" if value is None else escape(str(value))}</td>'
