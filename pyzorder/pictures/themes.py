"""Renders a picture as one SVG for both light and dark mode."""

from __future__ import annotations

from pyzorder.pictures.palette import DARK, VARIABLES
from pyzorder.pictures.picture import Picture


def themed_svg(picture: Picture) -> str:
    """Returns a picture as an SVG that also contains the colors for dark mode."""
    return themed(picture.bytes_of("svg").decode())


def themed(svg: str) -> str:
    """Adds the palette's dark-mode colors to an SVG.

    In dark mode, the background is transparent. Programs that do not support CSS variables draw the
    light colors.
    """
    dark = "; ".join(f"{VARIABLES[color]}: {other}" for color, other in DARK.items())
    for color, variable in VARIABLES.items():
        svg = svg.replace(color, f"var({variable}, {color})")
    style = f"<style>@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}</style>\n"
    start = svg.index(">", svg.index("<svg")) + 1
    return f"{svg[:start]}\n{style}{svg[start:]}"
