"""Pictures that follow a page's theme: one SVG for light pages and dark ones."""

from __future__ import annotations

from pyzorder.pictures.palette import DARK, VARIABLES
from pyzorder.pictures.picture import Picture


def themed_svg(picture: Picture) -> str:
    """A picture as an SVG that has other colours where the reader prefers dark pages.

    On dark pages it has no background. Programs without CSS variables draw the light colours.
    """
    svg = picture.bytes_of("svg").decode()
    dark = "; ".join(f"{VARIABLES[colour]}: {other}" for colour, other in DARK.items())
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var({variable}, {colour})")
    style = f"<style>@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}</style>\n"
    start = svg.index(">", svg.index("<svg")) + 1
    return f"{svg[:start]}\n{style}{svg[start:]}"
