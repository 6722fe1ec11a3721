"""Draws diagrams of boxes, text and files. They use the palette's colors and fit on a phone.

A diagram is 440 units wide. Its smallest font size is 12.5 units, which is still more than 11
pixels on a screen that is 400 pixels wide.
"""

from __future__ import annotations

from html import escape

from pyzorder.pictures.palette import FILE, FILE_EDGE, GRID, INK, OPENED, OPENED_EDGE, PAPER
from pyzorder.pictures.themes import themed

WIDTH, MARGIN = 440, 12
LEFT, RIGHT = MARGIN, WIDTH - MARGIN

SMALL, NORMAL, TITLE, LARGE = 12.5, 13.5, 14.5, 17
"""Font sizes."""

#: The width of a letter in code, relative to the font size.
LETTER = 0.602

PALE = 0.72
"""Opacity of secondary text."""

SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

#: The fill and edge colors of opened and new files, and those of all other files.
ACCENT, PLAIN = (OPENED, OPENED_EDGE), (FILE, FILE_EDGE)

#: Pixels per unit on wide screens.
_SCREEN = 1.1

Look = tuple[str, str]


class Drawing:
    """The elements of an SVG. Later elements are drawn on top of earlier ones."""

    def __init__(self) -> None:
        self._elements: list[str] = []

    def box(
        self, x: float, y: float, width: float, height: float, face: str = "none",
        edge: str = "none", radius: float = 0, opacity: float = 1,
    ) -> None:  # fmt: skip
        """Draws a rectangle. `opacity` applies only to its fill."""
        place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}"'
        self._add(f"<rect {place} {_style(fill=face, fill_opacity=opacity, stroke=edge)}/>")

    def card(self, y: float, height: float) -> None:
        """Draws a frame from margin to margin."""
        self.box(LEFT, y, RIGHT - LEFT, height, edge=GRID, radius=6)

    def line(self, x: float, y: float, to_x: float, to_y: float, edge: str = GRID) -> None:
        """Draws a line."""
        place = f'x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}"'
        self._add(f"<line {place} {_style(stroke=edge)}/>")

    def text(
        self, x: float, y: float, words: str, size: float = NORMAL, code: bool = False,
        bold: bool = False, anchor: str = "start", opacity: float = 1, color: str = INK,
    ) -> None:  # fmt: skip
        """Draws a line of text. `anchor` says whether its start, middle or end is at x."""
        style = _style(
            font_size=f"{size:g}px", font_family=MONO if code else SANS,
            font_weight="600" if bold else "normal", text_anchor=anchor,
            fill=color, fill_opacity=opacity,
        )  # fmt: skip
        self._add(f'<text x="{x:g}" y="{y:g}" {style}>{escape(words, quote=False)}</text>')

    def step(self, y: float, words: str) -> None:
        """Draws an arrow in the 32 units below y, with a caption."""
        x = LEFT + 12
        self._add(f'<path d="M{x} {y + 5:g}v18m-4.5 -6l4.5 6l4.5 -6" '
                  f"{_style(fill='none', stroke=FILE_EDGE, stroke_width=1.5)}/>")  # fmt: skip
        self.text(x + 14, y + 20, words, opacity=PALE)

    def file(
        self, x: float, y: float, width: float, height: float, look: Look, filled: bool = True
    ) -> None:
        """Draws a file as a sheet with a folded corner."""
        fold = width / 3
        sheet = f"M{x:g} {y:g}h{width - fold:g}l{fold:g} {fold:g}v{height - fold:g}h{-width:g}z"
        corner = f"M{x + width - fold:g} {y:g}v{fold:g}h{fold:g}"
        face, edge = look
        style = _style(fill=face if filled else "none", stroke=edge)
        self._add(f'<path d="{sheet}{corner}" {style}/>')

    def svg(self, height: float, title: str, description: str) -> str:
        """Returns the SVG. It adapts to light and dark mode."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
            f'width="{WIDTH * _SCREEN:g}" height="{height * _SCREEN:g}" role="img" '
            'aria-labelledby="title description">'
        )
        paper = f'<rect width="{WIDTH}" height="{height:g}" {_style(fill=PAPER)}/>'
        lines = [
            head,
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="description">{escape(description)}</desc>',
            paper,
            *self._elements,
            "</svg>",
        ]
        return themed("\n".join(lines) + "\n")

    def _add(self, element: str) -> None:
        self._elements.append(element)


def _style(**properties: str | float) -> str:
    said = (f"{name.replace('_', '-')}: {value}" for name, value in properties.items())
    return f'style="{"; ".join(said)}"'
