"""Pictures of a table's layout.

`rectangles` draws each data file as the rectangle between its minima and maxima, `depth` shows how
many files cover each value, and `curve` shows the curves along which rows can be sorted. Each
function returns a matplotlib Figure, which notebooks display and `save` writes to a file.

Needs matplotlib: `pip install 'pyzorder-spark[plot]'`.
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
    """Draws every file of a table as a rectangle over two columns, or as a bar over one.

    Args:
        table: the table's name in SQL syntax, or the path of its folder.
        columns: one or two columns, named as in ZORDER BY. By default, these are the first two
            columns that the files are clustered by.
        where: the condition of a query. The picture shows the query's box and highlights the
            files that the query opens.
        ranks: whether to space all bounds evenly along the axes. Even spacing separates files whose
            values are close together. Strings are always drawn this way.

    Raises:
        ZOrderError: more than two columns are named, the session does not run pyzorder, or it is a
            Spark Connect session.
        AnalysisException: the table or a column does not exist, or the condition is invalid.
    """
    if columns is not None and len(columns) > 2:
        raise errors.too_many_sides(columns)
    found = read(spark, table, columns, where)
    shown = found.only(*range(min(2, len(found.columns))))
    return draw_rectangles({shown.table: shown}, ranks)


def compare(layouts: Mapping[str, Layout], *, ranks: bool = False) -> Picture:
    """Draws layouts, such as those before and after an OPTIMIZE, side by side with the same axes.

    Layouts come from `read`: `compare({"before": before, "after": after})`.

    Args:
        layouts: the layouts, keyed by title.
        ranks: see `rectangles`.

    Raises:
        ZOrderError: the layouts have more than two columns.
        ValueError: there are no layouts, or their columns differ.
    """
    columns = {found.columns for found in layouts.values()}
    if len(columns) != 1:
        raise ValueError("compare needs one or more layouts, all with the same columns")
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
    """Draws how many files cover each value of a column.

    A lookup of a value opens the files that cover it.

    The arguments are those of `rectangles`, except that any number of columns is allowed.
    """
    found = read(spark, table, columns)
    return draw_depth(found, [ranks] * len(found.columns))


def curve(names: Sequence[str] = curves.NAMES, bits: int = 3) -> Picture:
    """Draws the paths of curves through a grid of 2^bits by 2^bits cells.

    Args:
        names: any of `zorder`, `hilbert` and `linear`.
        bits: bits per axis, between 1 and 8.

    Raises:
        ValueError: there is no such curve, or `bits` is out of range.
    """
    return draw_curves(names, bits)


def save(picture: Picture, path: str | Path) -> Path:
    """Writes a picture as PNG or SVG, depending on the extension of `path`.

    Creates the folder if needed.

    Returns:
        The path of the file.

    Raises:
        ZOrderError: the extension is neither `.png` nor `.svg`.
    """
    path = Path(path)
    suffix = suffix_of(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture.bytes_of(suffix))
    return path


def suffix_of(path: Path) -> str:
    """Returns `png` or `svg`.

    Raises:
        ZOrderError: `path` has another extension.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in ("png", "svg"):
        raise errors.no_such_picture(path.suffix)
    return suffix
