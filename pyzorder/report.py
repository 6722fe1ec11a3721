"""Writes an HTML report on a table: its health, pictures of its files, and its history.

Needs matplotlib and Jinja2: `pip install 'pyzorder-spark[plot]'`. The HTML file does not load
external resources or run scripts.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from pyzorder import bridge, history, layout
from pyzorder.history import History
from pyzorder.layout import Layout
from pyzorder.pictures.palette import VARIABLES
from pyzorder.plot import Picture, crowded, draw_depth, draw_rectangles
from pyzorder.text import pages
from pyzorder.text.wording import counted, percent, size

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_PAIRS = 3
"""Maximum number of column pairs for which pictures are drawn."""

MOST_RUNS = 50
"""Maximum number of runs in the history. The newest runs are shown."""


@dataclass(frozen=True)
class Health:
    """One row of DESCRIBE SKIPPING INDEX."""

    column: str
    type: str
    files: int
    unindexed: int
    unknown: int
    average_overlap: float | None
    max_depth: int | None
    lookup_share: float | None
    range_share: float | None
    clustered: int
    last_optimize: datetime | None
    verdict: str
    advice: str | None
    sketches: int = 0
    sketch_bytes: int = 0
    value_lists: int = 0


@dataclass(frozen=True)
class Verdict:
    """Whether the layout is good, and a sentence that describes it."""

    good: bool
    says: str


@dataclass(frozen=True)
class Advice:
    """A recommendation with its reason and, if there is one, the statement to run."""

    says: str
    statement: str = ""


def write(
    spark: SparkSession,
    table: str,
    path: str | Path,
    columns: Sequence[str] | None = None,
    where: str | None = None,
) -> Path:
    """Writes a report on a table to one HTML file.

    Args:
        table: the table's name in SQL syntax, or the path of its folder.
        path: the file to write. Its folder is created if needed.
        columns: the columns to draw, named as in ZORDER BY. By default, these are the columns that
            the files are clustered by.
        where: the condition of a query. The pictures highlight the files that the query opens,
            and the report explains why.

    Returns:
        The path of the report.

    Raises:
        ZOrderError: the session does not run pyzorder, or is a Spark Connect session.
        AnalysisException: the table or a column does not exist, or the condition is invalid.
    """
    found = layout.read(spark, table, columns, where)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    by = [] if is_clustered(found) or not found.files else clustered_next(found)
    first = bridge.verdict(spark, table, by) if by else {}
    page = render(found, health(spark, found), history.read(spark, table), first, spark.version)
    path.write_text(page, encoding="utf-8")
    return path


def health(spark: SparkSession, found: Layout) -> list[Health]:
    """Returns the rows of DESCRIBE SKIPPING INDEX, or none if the table has no index."""
    if not found.has_index:
        return []
    rows = spark.sql(f"DESCRIBE SKIPPING INDEX ON {found.target}").collect()
    return [Health(**row.asDict()) for row in rows]


def is_clustered(found: Layout) -> bool:
    """Whether OPTIMIZE has clustered any of the files."""
    return any(file.clustered_by for file in found.files)


def clustered_next(found: Layout) -> list[str]:
    """Returns the columns to recommend for clustering a table that is not clustered."""
    return [as_sql(column.name) for column in found.columns[:2]]


def render(
    found: Layout,
    columns: Sequence[Health],
    runs: History,
    first: Mapping[str, str],
    spark_version: str,
) -> str:
    """Renders the page.

    Args:
        first: the result of `bridge.verdict` for a first OPTIMIZE; empty if the table is already
            clustered or has no files.
    """
    facts = {
        "Folder": found.root,
        "Format": found.format,
        "Files": f"{len(found.files):,}",
        "Size": size(sum(file.size for file in found.files)),
        "Rows": pages.number(rows_of(found)),
        "Clustered by": clustering(found),
    }
    return pages.render(
        "report.html",
        spark_version,
        found=found,
        facts=facts,
        verdict=verdict(found, columns),
        advice=advice(found, columns, runs, first),
        pictures=pictures(found),
        columns=clustered_first(columns),
        runs=runs[::-1][:MOST_RUNS],
        all_runs=len(runs),
    )


def rows_of(found: Layout) -> int | None:
    """Returns the number of rows of the table, or None if a file could not be read."""
    rows = [file.rows for file in found.files]
    return None if None in rows else sum(row or 0 for row in rows)


def clustering(found: Layout) -> str:
    """Lists the columns that files are clustered by, and how many files are clustered by them."""
    orders = Counter(file.clustered_by for file in found.files)
    return "; ".join(
        f"{', '.join(order) or 'nothing'} ({counted(count, 'file')})"
        for order, count in orders.most_common(4)
    )


def verdict(found: Layout, columns: Sequence[Health]) -> Verdict:
    """Returns the report's opening sentence, based on the health of the clustering columns."""
    count = counted(len(found.files), "file")
    by = [health for health in columns if health.clustered]
    unindexed = max((health.unindexed for health in columns), default=0)
    if not found.files:
        return Verdict(True, "The table has no files.")
    if not columns:
        return Verdict(
            False, f"The table has no index: every query opens {len(found.files):,} of {count}."
        )
    opens = "; ".join(
        f"a lookup on {health.column} opens {percent(health.lookup_share)} of {count}"
        for health in by or best(columns)
        if health.lookup_share is not None
    )
    if not by:
        known = f"at best, {opens}" if opens else "no bounds are known"
        return Verdict(False, f"Indexed, but not clustered: {known}.")
    known = opens or "no bounds are known"
    if unindexed:
        return Verdict(False, f"{unindexed:,} of {count} unindexed: {known}.")
    return Verdict(True, f"Clustered and indexed: {known}.")


def best(columns: Sequence[Health]) -> list[Health]:
    """Returns a list that contains the column on which lookups open the fewest files. The list is
    empty if the share of files is unknown for every column."""
    known = [health for health in columns if health.lookup_share is not None]
    return sorted(known, key=lambda health: health.lookup_share or 0.0)[:1]


def advice(
    found: Layout, columns: Sequence[Health], runs: History, first: Mapping[str, str]
) -> list[Advice]:
    """Returns recommendations and the statements to run.

    Args:
        first: see `render`.
    """
    todo = []
    if first:
        by = ", ".join(clustered_next(found))
        what = "Cluster the files" if found.has_index else "Cluster and index the files"
        todo.append(
            Advice(
                f"{what} by these columns or, better, by those that queries filter on most often. "
                f"{first['sentence']}",
                f"OPTIMIZE {found.target} ZORDER BY ({by})",
            )
            if first["kind"] == "pays"
            else Advice(f"Clustering the files by {by} would not help. {first['sentence']}")
        )
    if not found.has_index:
        todo.append(Advice("Index the current files:", f"CREATE SKIPPING INDEX ON {found.target}"))
    unindexed = max((health.unindexed for health in columns), default=0)
    if unindexed:
        todo.append(
            Advice(
                f"Every query opens {counted(unindexed, 'unindexed file')}. The next OPTIMIZE adds "
                "the missing entries to the index. To add them now:",
                f"REFRESH SKIPPING INDEX ON {found.target}",
            )
        )
    if is_clustered(found) and columns:
        todo.append(Advice(columns[0].verdict, columns[0].advice or ""))
    todo += [
        Advice(
            f"Run {run.run} ({run.operation or 'damaged record'}) is unfinished: it is still "
            "running, or its process died and the next OPTIMIZE, RESTORE or VACUUM will complete "
            "or undo it. "
            "Queries see every row exactly once."
        )
        for run in runs
        if run.ended is None
    ]
    if runs.kept_bytes:
        todo += [
            Advice(
                f"Retired files take up {size(runs.kept_bytes)}. To delete those that have "
                "expired:",
                f"VACUUM {found.target}",
            ),
        ]
        if runs.can_restore:
            todo.append(
                Advice(
                    "To undo the last OPTIMIZE, as long as the files that it replaced still exist:",
                    f"RESTORE {found.target} TO BEFORE OPTIMIZE",
                )
            )
    return todo


def clustered_first(columns: Sequence[Health]) -> list[Health]:
    """Sorts columns: clustering columns first, then by the share of files that a lookup opens."""

    def place(health: Health) -> tuple[bool, float]:
        share = health.lookup_share
        return not health.clustered, 2.0 if share is None else share

    return sorted(columns, key=place)


def as_sql(name: str) -> str:
    """Quotes the parts of a name where SQL requires it. Parts with dots are already quoted."""
    parts = re.findall(r"`(?:[^`]|``)*`|[^.]+", name)
    return ".".join(
        part if re.fullmatch(r"(?a:\w+)|`.*`", part, re.DOTALL) else f"`{part}`" for part in parts
    )


def pictures(found: Layout) -> list[dict[str, Any]]:
    """Draws the pictures. Each is a mapping with the keys `title` and `svg`."""
    if not any(found.only(i).covering() for i in range(len(found.columns))):
        return []
    places = range(len(found.columns))
    pairs: list[tuple[int, ...]] = [*itertools.combinations(places, 2)] or [(0,)]
    drawn = []
    for number, pair in enumerate(pairs[:MOST_PAIRS]):
        shown = found.only(*pair)
        names = " and ".join(column.name for column in shown.columns)
        for ranks in (False, True) if any(crowded(shown)) else (False,):
            title = f"Files over {names}" + (", bounds evenly spaced" if ranks else "")
            picture = draw_rectangles({found.table: shown}, ranks, bare=True)
            drawn.append({"title": title, "svg": inline(picture, f"r{number}{ranks:d}", title)})
    title = "How many files cover a value"
    drawn.append(
        {
            "title": title,
            "svg": inline(draw_depth(found, crowded(found), bare=True), "depth", title),
        }
    )
    return drawn


def inline(picture: Picture, name: str, title: str) -> Markup:
    """Returns a picture as an SVG element in the page's colors. The ids in the element begin with
    `name`."""
    svg = picture.bytes_of("svg").decode()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    used = set(re.findall(r"(?:url\(#|xlink:href=\"#)([^)\"]+)", svg))
    svg = re.sub(
        r' id="([^"]*)"', lambda id_: f' id="{name}-{id_[1]}"' if id_[1] in used else "", svg
    )
    svg = re.sub(r"(url\(#|xlink:href=\"#)", rf"\1{name}-", svg)
    for color, variable in VARIABLES.items():
        svg = svg.replace(color, f"var({variable})")
    return Markup(svg.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1))
