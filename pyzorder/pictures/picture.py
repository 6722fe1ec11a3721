"""The base of all pictures: settings, sizes, and a Figure that notebooks display."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pyzorder.pictures.palette import GRID, INK, PAPER
from pyzorder.pictures.scales import plain

SETTINGS: Any = {
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.labelsize": 11,
    "axes.titlesize": 11.5,
    "axes.titlelocation": "left",
    "font.size": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "pyzorder",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
"""matplotlib's settings while a picture is drawn and while it is saved."""

DOTS_PER_INCH = 120


class Picture(Figure):
    """A matplotlib Figure that notebooks display, regardless of their settings."""

    def bytes_of(self, suffix: str) -> bytes:
        """Renders the picture as `png` or `svg`."""
        buffer = BytesIO()
        metadata: Any = {"Date": None} if suffix == "svg" else {}
        with rc_context(SETTINGS):
            self.savefig(buffer, format=suffix, dpi=DOTS_PER_INCH, metadata=metadata)
        return buffer.getvalue()

    def _repr_png_(self) -> bytes:
        return self.bytes_of("png")

    def _repr_svg_(self) -> str:
        return self.bytes_of("svg").decode()


def canvas(width: float, height: float) -> Picture:
    """Returns an empty picture. Sizes are in inches."""
    picture = Picture(figsize=(width, height), layout="constrained", facecolor=PAPER)
    FigureCanvasAgg(picture)
    return picture


def wrapped(text: str, picture: Picture, letters: float) -> str:
    """Wraps text to the width of the picture, with `letters` characters per inch."""
    width = max(20, int(picture.get_figwidth() * letters))
    return plain(textwrap.fill(text, width, break_on_hyphens=False))


def explain(picture: Picture, entries: Sequence[Any], sentences: Sequence[str]) -> None:
    """Adds sentences, without duplicates, and a legend below the picture."""
    lines = "\n".join(wrapped(sentence, picture, 13) for sentence in dict.fromkeys(sentences))
    if entries or lines:
        picture.legend(
            handles=list(entries),
            ncols=max(1, len(entries)),
            loc="outside lower left",
            alignment="left",
            frameon=False,
            title=lines,
            title_fontsize=9,
            handlelength=2.4,
        )
