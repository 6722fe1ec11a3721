"""Pictures of a table's layout: each data file as the rectangle of its minima and maxima."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

Rectangle = tuple[float, float, float, float]
"""Minimum and maximum of the first column, then of the second: one file. NaN: only nulls."""


@dataclass(frozen=True)
class Panel:
    """One layout to draw, and one lookup in it: `column` (0 or 1) equals `value`."""

    title: str
    files: Sequence[Rectangle]
    column: int
    value: float

    def opened(self) -> list[bool]:
        """Which files the lookup must open."""
        low, high = 2 * self.column, 2 * self.column + 1
        return [file[low] <= self.value <= file[high] for file in self.files]


def save_layouts(panels: Sequence[Panel], names: tuple[str, str], path: Path) -> None:
    """Draws the panels side by side into a PNG; needs matplotlib (`pip install pyzorder[plot]`)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(6.2 * len(panels), 5.6), sharex=True, sharey=True, squeeze=False
    )
    for axis, panel in zip(axes[0], panels, strict=True):
        draw(axis, panel, names)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def draw(axis: Any, panel: Panel, names: tuple[str, str]) -> None:
    """One panel: the files the lookup opens in colour, the others in grey, the lookup as a line."""
    from matplotlib.patches import Rectangle as Patch

    opened = panel.opened()
    for (x0, x1, y0, y1), touched in sorted(
        zip(panel.files, opened, strict=True), key=lambda pair: pair[1]
    ):
        if isnan(x0) or isnan(y0):
            continue
        face, edge = ("#e8743b", "#8c3a10") if touched else ("#dfe6ee", "#7d8fa3")
        alpha = 0.02 if touched and all(opened) else 0.75
        axis.add_patch(Patch((x0, y0), x1 - x0, y1 - y0, facecolor=face, alpha=alpha, linewidth=0))
        axis.add_patch(Patch((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=edge, linewidth=0.7))
    line = axis.axvline if panel.column == 0 else axis.axhline
    line(panel.value, color="#1b2a41", linewidth=1.2, linestyle="--")
    axis.set_title(
        f"{panel.title}\n{names[panel.column]} = {panel.value:g} opens "
        f"{sum(opened)} of {len(opened)} files",
        fontsize=11,
    )
    axis.set_xlabel(names[0])
    axis.set_ylabel(names[1])
    axis.ticklabel_format(style="plain")
    axis.autoscale_view()
    axis.margins(0.02)
