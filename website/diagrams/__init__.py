"""Draws the diagrams in docs/ from the code and from sql/ (`make diagrams`)."""

from __future__ import annotations

from pathlib import Path

from website.diagrams import engines, publishing, skipping

DOCS = Path(__file__).parents[2] / "docs"

#: Each diagram, and the function that returns its SVG.
DRAWN = {
    DOCS / "select.svg": skipping.draw,
    DOCS / "optimize.svg": publishing.draw,
    DOCS / "engines.svg": engines.draw,
}
