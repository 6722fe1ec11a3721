"""The layouts that the JVM found for a workload."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyzorder.advisor.advice import Layout


@dataclass(frozen=True)
class Found:
    """The layouts that were evaluated."""

    present: Layout
    """The current files with the current index."""

    present_indexed: Layout
    """The current files with an index that covers all of them."""

    candidates: tuple[Layout, ...]
    """ZORDER BY layouts, best first."""

    sorts: tuple[Layout, ...]
    """Plain sorts by the columns of `best`, best first."""

    best: Layout | None
    """The candidate to recommend. It is not always the first one, because each additional column
    must save enough."""


def search(api: Any, weights: Sequence[int], most: int, margin: float, weigh: bool) -> Found:
    """Evaluates layouts for the readings that were sent to the JVM.

    Args:
        api: the io.pyzorder.api.AdvisorApi that holds the readings.
        weights: the count of each reading.
        most: maximum number of clustering columns.
        margin: fraction by which each additional column must reduce the size of the opened files.
        weigh: whether to measure how the size of the files changes.
    """
    found = json.loads(api.search(list(weights), most, float(margin), weigh))
    base = found["present"]["bytesOpened"]

    def layout(name: str, of: dict[str, Any]) -> Layout:
        opened = of["bytesOpened"]
        share = opened / base if base else 1.0
        return Layout(name, tuple(of["columns"]), opened, share, of["growth"])

    candidates = [layout(f"ZORDER BY {listed(o['columns'])}", o) for o in found["candidates"]]
    return Found(
        present=layout("current files", found["present"]),
        present_indexed=layout("current files, all indexed", found["presentIndexed"]),
        candidates=tuple(candidates),
        sorts=tuple(layout(f"sorted by {listed(o['columns'])}", o) for o in found["sorts"]),
        best=None if found["best"] is None else candidates[found["best"]],
    )


def listed(columns: Sequence[str]) -> str:
    """Formats columns as in ZORDER BY, and quotes parts of names where SQL requires it."""
    parts = [re.findall(r"`(?:[^`]|``)+`|[^.`]+", column) for column in columns]
    names = (
        ".".join(part if re.fullmatch(r"\w+|`.*`", part) else f"`{part}`" for part in column)
        for column in parts
    )
    return f"({', '.join(names)})"
