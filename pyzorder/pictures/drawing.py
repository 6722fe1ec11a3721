"""Draws pictures with matplotlib, for pyzorder.plot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from pyzorder.layout import DataFile, Layout, Range
from pyzorder.pictures import curves
from pyzorder.pictures.palette import BOX, FILE, FILE_EDGE, GRID, OPENED, OPENED_EDGE
from pyzorder.pictures.picture import SETTINGS, Picture, canvas, explain, wrapped
from pyzorder.pictures.scales import Scale, is_text, plain, scale
from pyzorder.text.wording import counted

Floats = npt.NDArray[np.float64]
Limits = tuple[float, float]

MOST_FILES = 20_000
"""Maximum number of files to draw. If there are more, some of those that the query does not open
are omitted."""

SINGLE = 0.8
"""Opacity of a rectangle that does not overlap any other."""

MOST_PATHS = 2_000
"""Maximum number of rectangles that are drawn as paths in an SVG. If there are more, they are
rasterized."""


@dataclass(frozen=True)
class Boxes:
    """Rectangles, as rows of x0, x1, y0 and y1, and attributes that determine their style.

    `lit` marks the files that the query opens.
    """

    sides: Floats
    lit: npt.NDArray[np.bool_]
    indexed: npt.NDArray[np.bool_]


def draw_rectangles(layouts: Mapping[str, Layout], ranks: bool, bare: bool = False) -> Picture:
    """Draws one panel per layout. All panels have the same axes.

    Args:
        layouts: the layouts, keyed by title.
        ranks: whether to space all bounds evenly along the axes.
        bare: whether to omit the query and the notes.
    """
    with rc_context(SETTINGS):
        width = 7.0 if len(layouts) == 1 else 5.2 * len(layouts)
        picture = canvas(width, 5.6)
        panels = picture.subplots(1, len(layouts), sharex=True, sharey=True, squeeze=False)[0]
        scales = scales_of(list(layouts.values()), ranks)
        drawn = [boxes_of(found, scales) for found in layouts.values()]
        limits = [
            limits_of([boxes.sides[:, side : side + 2] for boxes in drawn]) for side in (0, 2)
        ]
        boxed = False
        for panel, boxes, (name, found) in zip(panels, drawn, layouts.items(), strict=True):
            panel.set_title(plain(titled(name, found)))
            draw_boxes(panel, boxes, limits)
            if any(limit is not None for side in found.box for limit in side):
                boxed = draw_query(panel, found.box, scales, limits) or boxed
            dress(panel, scales, limits)
        for panel in panels[1:]:
            panel.set_ylabel("")
        queried = any(found.opened is not None for found in layouts.values())
        entries = legend(drawn, queried, boxed)
        if bare:
            explain(picture, entries, [])
        else:
            query_title(picture, layouts.values())
            explain(picture, entries, noted(layouts))
        return picture


def scales_of(layouts: Sequence[Layout], ranks: bool) -> list[Scale]:
    """Returns, for each column, a scale that covers the values of all layouts."""
    found = []
    for i, column in enumerate(layouts[0].columns):
        pairs = [file.bounds[i] for layout in layouts for file in layout.files]
        bounds = [end for pair in pairs for end in pair or ()]
        sides = [side for layout in layouts for side in layout.box[i : i + 1]]
        limits = [limit for side in sides for limit in side if limit is not None]
        found.append(scale(column, bounds, layouts[0].zone, ranks, limits))
    return found


def boxes_of(layout: Layout, scales: Sequence[Scale]) -> Boxes:
    """Returns the rectangles of files with bounds. For one column, these are sorted bars."""
    files = chosen(layout)
    sides = np.array([ends_of(file, scales) for file in files], dtype=float)
    sides = sides.reshape(len(files), 2 * len(scales)) + margins(scales)
    order = np.arange(len(files))
    if len(scales) == 1:
        order = np.lexsort((sides[:, 1], sides[:, 0]))
        rows = np.arange(len(files), dtype=float)
        sides = np.column_stack([sides[order], rows + 0.1, rows + 0.9])
    opened = layout.opened or frozenset()
    return Boxes(
        sides,
        np.array([file.path in opened for file in files], dtype=bool)[order],
        np.array([file.indexed for file in files], dtype=bool)[order],
    )


def margins(scales: Sequence[Scale]) -> Floats:
    """Returns how far rectangles extend beyond the positions of their bounds: half a step."""
    return np.array([part for side in scales for part in (-side.step / 2, side.step / 2)])


def ends_of(file: DataFile, scales: Sequence[Scale]) -> list[float]:
    """Returns the positions of a file's bounds in each column."""
    pairs = zip(scales, file.bounds, strict=True)
    return [side.place(end) for side, pair in pairs for end in pair or ()]


def chosen(layout: Layout) -> list[DataFile]:
    """Returns the files to draw. If there are too many, omits some that the query does not open."""
    files = layout.covering()
    if len(files) <= MOST_FILES:
        return files
    opened = layout.opened or frozenset()
    lit = [file for file in files if file.path in opened]
    others = [file for file in files if file.path not in opened]
    room = max(1, MOST_FILES - len(lit))
    return lit + others[:: -(-len(others) // room)]


def crowded(layout: Layout) -> list[bool]:
    """Returns, for each column, whether most files' ranges are much narrower than if the files
    divided the axes evenly."""
    files = layout.covering()
    found = []
    for i, side in enumerate(scales_of([layout], ranks=False)):
        ends = np.array([[side.place(end) for end in file.bounds[i] or ()] for file in files])
        low, high = limits_of([ends])
        widths = np.diff(np.clip(ends.reshape(-1, 2), low, high), axis=1)
        even = (high - low) * max(1, len(files)) ** (-1 / len(layout.columns))
        narrow = len(files) > 0 and bool(np.median(widths) < 0.2 * even)
        found.append(narrow and not is_text(layout.columns[i]))
    return found


def noted(layouts: Mapping[str, Layout]) -> list[str]:
    """Returns the notes on all panels, with the panels' titles if there are several panels."""
    several = len(layouts) > 1
    return [
        plain(f"{name}: {note}") if several else note
        for name, found in layouts.items()
        for note in notes(found)
    ]


def notes(layout: Layout) -> list[str]:
    """Returns notes on files that the picture omits or marks."""
    left_out = len(layout.covering()) - len(chosen(layout))
    found = layout.notes()
    if left_out:
        found.append(
            f"Not drawn: {counted(left_out, 'file')}, because at most {MOST_FILES:,} are drawn."
        )
    return found


def limits_of(sides: Iterable[Floats]) -> Limits:
    """Returns the limits of an axis that shows all finite positions with some margin."""
    places = np.concatenate([np.ravel(side) for side in sides])
    finite = places[np.isfinite(places)]
    if not len(finite):
        return -0.5, 0.5
    low, high = float(finite.min()), float(finite.max())
    room = (high - low) * 0.03 or 0.5
    return low - room, high + room


def draw_boxes(panel: Any, boxes: Boxes, limits: Sequence[Limits]) -> None:
    """Draws the rectangles. Highlighted rectangles are on top, and very thin ones are widened."""
    sides = boxes.sides.copy()
    for first, (low, high) in zip((0, 2), limits, strict=True):
        pair = np.clip(sides[:, first : first + 2], low, high)
        thin = np.maximum(0.0, (high - low) * 0.003 - (pair[:, 1] - pair[:, 0])) / 2
        sides[:, first : first + 2] = pair + np.column_stack([-thin, thin])
    area = float(np.prod([high - low for low, high in limits]))
    for lit in (False, True):
        for indexed in (True, False):
            group = sides[(boxes.lit == lit) & (boxes.indexed == indexed)]
            if not len(group):
                continue
            covered = ((group[:, 1] - group[:, 0]) * (group[:, 3] - group[:, 2])).sum() / area
            corners = group[:, [[0, 2], [1, 2], [1, 3], [0, 3]]]
            common: Any = {"rasterized": len(sides) > MOST_PATHS, "zorder": 2.0 + lit}
            # Reduce the opacity so that stacked files do not hide what is below them.
            opacity = 1 - (1 - SINGLE) ** (1 / max(1.0, covered))
            width = 0.8 if len(sides) <= 500 else 0.3
            face, edge = look(lit, indexed)
            panel.add_collection(PolyCollection(corners, alpha=opacity, **face, **common))
            panel.add_collection(PolyCollection(corners, linewidth=width, **edge, **common))


def draw_query(
    panel: Any, box: Sequence[Range], scales: Sequence[Scale], limits: Sequence[Limits]
) -> bool:
    """Draws the query's box. On sides without a limit, it extends to the edge of the panel.

    Returns:
        False if the box is outside the panel.
    """
    ends = []
    for i, (low, high) in enumerate(limits):
        least, greatest = box[i] if i < len(box) else (None, None)
        room = scales[i].step / 2 if i < len(scales) else 0.0
        start = low if least is None else scales[i].place(least) - room
        end = high if greatest is None else scales[i].place(greatest) + room
        if end < low or start > high:
            return False
        ends.append((max(low, start), min(high, end)))
    (x0, x1), (y0, y1) = ends
    panel.add_patch(
        Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=BOX, linewidth=1.8, zorder=4)
    )
    return True


def look(lit: bool, indexed: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the styles of the face and the edge of a file's rectangle."""
    face = {"facecolor": OPENED if lit else FILE, "edgecolor": "none"}
    edge = {"facecolor": "none", "edgecolor": OPENED_EDGE if lit else FILE_EDGE}
    return face, {**edge, "linestyle": "solid" if indexed else (0, (3, 2))}


def dress(panel: Any, scales: Sequence[Scale], limits: Sequence[Limits]) -> None:
    """Sets the limits, ticks and labels of both axes.

    If there is only one column, the y-axis counts files.
    """
    panel.set_xlim(limits[0])
    panel.set_ylim(limits[1])
    panel.set_xlabel(scales[0].label)
    scales[0].dress(panel.xaxis)
    if len(scales) > 1:
        panel.set_ylabel(scales[1].label)
        scales[1].dress(panel.yaxis)
    else:
        panel.set_ylabel("files")
        panel.set_yticks([])


def titled(name: str, layout: Layout) -> str:
    """Returns the panel's title, which says how many files there are and how many are opened."""
    if layout.opened is None:
        return f"{name}: {counted(len(layout.files), 'file')}"
    return f"{name}: opens {len(layout.opened):,} of {counted(len(layout.files), 'file')}"


def query_title(picture: Picture, layouts: Iterable[Layout]) -> None:
    """Shows the queries above the picture."""
    queries = {f"WHERE {' '.join(found.where.split())}": None for found in layouts if found.where}
    shown = [query if len(query) <= 300 else query[:299] + "…" for query in queries]
    if shown:
        lines = "\n".join(wrapped(query, picture, 9.5) for query in shown)
        picture.suptitle(lines, x=0.01, ha="left", fontsize=11)


def legend(drawn: Sequence[Boxes], asked: bool, boxed: bool) -> list[Any]:
    """Returns the entries of the legend, or none if all rectangles look alike.

    Args:
        asked: whether there is a query.
        boxed: whether the query's box is drawn.
    """
    there = [
        (lit, indexed)
        for lit in (True, False)
        for indexed in (True, False)
        if any(((boxes.lit == lit) & (boxes.indexed == indexed)).any() for boxes in drawn)
    ]
    entries: list[Any] = []
    if asked or not all(indexed for _, indexed in there):
        for lit, indexed in there:
            words = ["opened" if lit else "not opened"] if asked else []
            if not (indexed and asked):
                words.append("indexed" if indexed else "unindexed")
            face, edge = look(lit, indexed)
            fill = to_rgba(face["facecolor"], SINGLE)
            entries.append(Patch(**{**edge, "facecolor": fill}, label=", ".join(words)))
    if boxed:
        entries.append(Patch(facecolor="none", edgecolor=BOX, linewidth=1.8, label="the query"))
    return entries


def draw_depth(layout: Layout, ranks: Sequence[bool], bare: bool = False) -> Picture:
    """Draws one panel per column, one below the other.

    Args:
        ranks: for each column, whether to space all bounds evenly along the axis.
        bare: whether to omit the notes.
    """
    with rc_context(SETTINGS):
        count = len(layout.columns)
        picture = canvas(7.0, 0.4 + 2.2 * count)
        panels = picture.subplots(count, 1, squeeze=False)[:, 0]
        for i, panel in enumerate(panels):
            draw_depth_of(panel, layout.only(i), ranks[i])
        explain(picture, [], [] if bare else layout.notes())
        return picture


def draw_depth_of(panel: Any, layout: Layout, ranks: bool) -> None:
    """Draws how many files cover each value of a column."""
    (side,) = scales_of([layout], ranks)
    sides = np.array([ends_of(file, [side]) for file in layout.covering()], dtype=float)
    sides = sides.reshape(-1, 2)
    low, high = limits_of([sides + margins([side])])
    x, y = depths(np.clip(sides, low, high), side.step)
    panel.fill_between(x, y, color=FILE, linewidth=0, rasterized=len(x) > 4 * MOST_PATHS)
    panel.plot(x, y, color=FILE_EDGE, linewidth=1.0, rasterized=len(x) > 4 * MOST_PATHS)
    panel.set_title(
        plain(f"{layout.columns[0].name}: at most {int(y.max(initial=0))} of ")
        + f"{counted(len(layout.files), 'file')} cover a value"
    )
    panel.set_xlim(low, high)
    panel.set_ylim(0, max(1.0, y.max(initial=0) * 1.08))
    panel.set_xlabel(side.label)
    panel.set_ylabel("files")
    panel.grid(axis="y", color=GRID, linewidth=0.5)
    panel.set_axisbelow(True)
    side.dress(panel.xaxis)
    panel.yaxis.get_major_locator().set_params(integer=True, nbins=5)


def depths(sides: Floats, step: float) -> tuple[Floats, Floats]:
    """Returns positions, and the number of ranges that cover each of them.

    Args:
        sides: rows with the low and the high end of a range, both inclusive.
        step: the distance between neighboring values, each of which covers a whole step; 0 for
            continuous values. In that case, each end of a range is returned three times, with the
            depths to its left, at it, and to its right.
    """
    lows, highs = np.sort(sides[:, 0] - step / 2), np.sort(sides[:, 1] + step / 2)
    ends = np.unique(np.concatenate([lows, highs]))
    begun, at_end = (np.searchsorted(lows, ends, side=side) for side in ("right", "left"))
    ended, before = (np.searchsorted(highs, ends, side=side) for side in ("right", "left"))
    left, at, right = at_end - before, begun - before, begun - ended
    parts = [left, right] if step else [left, at, right]
    return np.repeat(ends, len(parts)), np.column_stack(parts).ravel().astype(float)


def draw_curves(names: Sequence[str], bits: int) -> Picture:
    """Draws one panel per curve. Colors go from dark to light along the curve."""
    ways = [curves.cells(name, bits) for name in names]
    with rc_context(SETTINGS):
        picture = canvas(3.4 * len(names) + 0.2, 4.1)
        panels = picture.subplots(1, len(names), squeeze=False)[0]
        for panel, name, (x, y) in zip(panels, names, ways, strict=True):
            points = np.column_stack([x, y]).astype(float)
            steps = np.stack([points[:-1], points[1:]], axis=1)
            line = LineCollection(list(steps), cmap="viridis", linewidth=2.2, capstyle="round")
            line.set_array(np.arange(len(steps)))
            # The darkest colors would be invisible in dark mode, and the lightest in light mode.
            line.set_clim(-0.4 * len(steps), 1.2 * len(steps))
            panel.add_collection(line)
            panel.plot(*points[0], "o", color=BOX, markersize=7)
            panel.plot(*points[-1], "s", color=OPENED, markersize=7)
            edges = np.arange(1 << bits) - 0.5
            panel.set_xticks(edges, labels=[])
            panel.set_yticks(edges, labels=[])
            panel.grid(color=GRID, linewidth=0.6)
            panel.tick_params(length=0)
            panel.set_xlim(-0.5, (1 << bits) - 0.5)
            panel.set_ylim(-0.5, (1 << bits) - 0.5)
            panel.set_aspect("equal")
            panel.set_title(name)
            panel.set_xlabel("first column")
        panels[0].set_ylabel("second column")
        ends: Any = {"linestyle": "none", "markersize": 7}
        explain(
            picture,
            [
                Line2D([], [], marker="o", color=BOX, label="first cell", **ends),
                Line2D([], [], marker="s", color=OPENED, label="last cell", **ends),
            ],
            [],
        )
        return picture
