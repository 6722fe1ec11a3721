"""Pictures of a table's layout: each data file as the rectangle of its minima and maxima, how many
files cover each value, and the curves that files are laid out along.

Needs matplotlib: `pip install 'pyzorder-spark[plot]'`. Every function returns a matplotlib Figure,
which a notebook shows; `save` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyzorder import errors, layout
from pyzorder.pictures import curves

try:
    from pyzorder.pictures.drawing import crowded, draw_curves, draw_depth, draw_rectangles
    from pyzorder.pictures.picture import Picture
except ModuleNotFoundError as missing:
    if not (missing.name or "").startswith("matplotlib"):
        raise
    raise errors.plot_missing("matplotlib") from None
from pyzorder.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "Layout",
    "Picture",
    "compare",
    "crowded",
    "curve",
    "depth",
    "draw_depth",
    "draw_rectangles",
    "read",
    "rectangles",
    "save",
]

read = layout.read


def rectangles(
    spark: SparkSession,
    table: str,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    *,
    ranks: bool = False,
) -> Picture:
    """Every file of a table as a rectangle over two columns, or as a bar over one.

    Args:
        table: its name as in SQL, or the path of a folder.
        columns: named as in ZORDER BY; None: those that the files are clustered by, the first two.
        where: the condition of a query: its box is drawn, and the files that it opens are lit.
        ranks: give each bound as much room as any other, which shows files where most values are
            crowded; strings are always drawn so.

    Raises:
        ZOrderError: more than two columns are named; or what `pyzorder.layout.read` raises.
        AnalysisException: there is no such table or column, or the condition is none.
    """
    if columns is not None and len(columns) > 2:
        raise errors.too_many_sides(columns)
    found = read(spark, table, columns, where)
    shown = found.only(*range(min(2, len(found.columns))))
    return draw_rectangles({shown.table: shown}, ranks)


def compare(layouts: Mapping[str, Layout], *, ranks: bool = False) -> Picture:
    """Layouts side by side over the same axes, each under its name: before and after an OPTIMIZE.

    A layout is what `read` returned at the time: `compare({"before": before, "after": after})`.

    Raises:
        ZOrderError: they have more than two columns.
        ValueError: there are none, or their columns differ.
    """
    columns = {found.columns for found in layouts.values()}
    if len(columns) != 1:
        raise ValueError("compare takes layouts of the same columns, at least one")
    (of_all,) = columns
    if len(of_all) > 2:
        raise errors.too_many_sides([column.name for column in of_all])
    return draw_rectangles(layouts, ranks)


def depth(
    spark: SparkSession,
    table: str,
    columns: Sequence[str] | None = None,
    *,
    ranks: bool = False,
) -> Picture:
    """How many files cover each value of a column: what a lookup of it cannot skip by that column.

    The arguments are those of `rectangles`, with any number of columns.
    """
    found = read(spark, table, columns)
    return draw_depth(found, [ranks] * len(found.columns))


def curve(names: Sequence[str] = curves.NAMES, bits: int = 3) -> Picture:
    """The way of curves through a grid of 2^bits by 2^bits cells: `zorder`, `hilbert`, `linear`.

    Raises:
        ValueError: there is no such curve, or `bits` is not from 1 to 8.
    """
    return draw_curves(names, bits)


def save(picture: Picture, path: str | Path) -> Path:
    """Writes a PNG or an SVG, as the file's suffix says; makes its folder. Returns the path.

    Raises:
        ZOrderError: another suffix.
    """
    path = Path(path)
    suffix = suffix_of(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture.bytes_of(suffix))
    return path


def suffix_of(path: Path) -> str:
    """`png` or `svg`.

    Raises:
        ZOrderError: another suffix.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in ("png", "svg"):
        raise errors.no_such_picture(path.suffix)
    return suffix
