"""Searches for the clustering columns that let a workload read the fewest bytes."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyzorder.advisor.advice import Layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Maximum number of columns to combine. The columns that save the most on their own are chosen.
MOST_COLUMNS = 6

#: The number of layouts that each step of the search, except the first, extends by one column.
BEAM = 3


class LayoutSearch:
    """Evaluates layouts for a workload, whose readings have already been sent to the JVM."""

    def __init__(self, api: Any, weights: NDArray[np.float64]) -> None:
        """Evaluates the layout of the table's current files.

        Args:
            api: the io.pyzorder.api.AdvisorApi that holds the readings.
            weights: the count of each reading.
        """
        self._api = api
        self._weights = weights
        self._each: dict[str, NDArray[np.float64]] = {}
        self._base = 0.0
        now, complete = api.openedNow(False), api.openedNow(True)
        self._base = self._layout("", (), now).bytes_opened
        self.present = self._layout("current files", (), now)
        self.present_indexed = self._layout("current files, all indexed", (), complete)

    def candidates(
        self, columns: Sequence[str], most: int, margin: float, weigh: bool
    ) -> tuple[list[Layout], list[Layout]]:
        """Returns ZORDER BY layouts, and plain sorts by the columns of the best of these layouts.

        Combines the columns that save the most on their own: each step extends the best layouts so
        far by one more column. Both lists are sorted, best first.

        Args:
            columns: the columns that the table can be clustered by.
            most: maximum number of clustering columns.
            margin: see `chosen`.
            weigh: whether to measure how the size of the files changes. For each number of columns,
                this measurement writes some files of the best layout.
        """
        alone = sorted((self._z_order((c,)) for c in columns), key=lambda o: o.bytes_opened)
        names = [layout.columns[0] for layout in alone[:MOST_COLUMNS]]
        found = list(alone)
        kept = alone[:MOST_COLUMNS]
        bests = alone[:1]
        for size in range(2, most + 1):
            wider = {
                tuple(n for n in names if n in (*layout.columns, name))
                for layout in kept[: MOST_COLUMNS if size == 2 else BEAM]
                for name in names
                if name not in layout.columns
            }
            if not wider:
                break
            kept = sorted(map(self._z_order, sorted(wider)), key=lambda o: o.bytes_opened)
            found += kept
            bests.append(kept[0])
        if weigh and bests:
            weighed = json.loads(self._api.growth([list(o.columns) for o in bests]))
            growth = {len(o.columns): by for o, by in zip(bests, weighed, strict=True)}
            found = [self._grown(o, growth[len(o.columns)]) for o in found]
        found.sort(key=lambda o: (o.bytes_opened, len(o.columns)))
        best = self.chosen(found, margin)
        orders = itertools.permutations(best.columns) if best and len(best.columns) > 1 else ()
        sorts = [self._sorted(by, best.growth if best else 1.0) for by in orders]
        return found, sorted(sorts, key=lambda o: o.bytes_opened)

    def chosen(self, candidates: Sequence[Layout], margin: float) -> Layout | None:
        """Returns the best candidate, or None if there is none.

        A candidate with more columns is better only if each additional column reduces the total
        size of the opened files by at least the fraction `margin`, and if the saving does not come
        from only a few readings.
        """
        best: Layout | None = None
        for count in sorted({len(layout.columns) for layout in candidates}):
            own = [layout for layout in candidates if len(layout.columns) == count]
            layout = min(own, key=lambda o: o.bytes_opened)
            if best is None or self._saves(layout, best, margin):
                best = layout
        return best

    def _saves(self, larger: Layout, smaller: Layout, margin: float) -> bool:
        """Whether `larger` saves at least the margin for each additional column, and more than the
        standard error of the saving."""
        asked = (1 - margin) ** (len(larger.columns) - len(smaller.columns))
        if larger.bytes_opened > asked * smaller.bytes_opened or not smaller.bytes_opened:
            return False
        saved = self._each[smaller.name] - self._each[larger.name]
        total = self._weights.sum()
        mean = np.average(saved, weights=self._weights)
        variance = np.average((saved - mean) ** 2, weights=self._weights)
        return bool(total < 2 or mean > np.sqrt(variance / (total - 1)))

    def _z_order(self, by: tuple[str, ...]) -> Layout:
        return self._layout(f"ZORDER BY {listed(by)}", by, self._api.openedOf(list(by), False))

    def _sorted(self, by: tuple[str, ...], growth: float) -> Layout:
        layout = self._layout(f"sorted by {listed(by)}", by, self._api.openedOf(list(by), True))
        return self._grown(layout, growth)

    def _layout(self, name: str, by: tuple[str, ...], opened: str) -> Layout:
        each = np.array(json.loads(opened), dtype=float)
        self._each[name] = each
        mean = float(np.average(each, weights=self._weights)) if len(each) else 0.0
        return Layout(name, by, mean, mean / self._base if self._base else 1.0, 1.0)

    def _grown(self, layout: Layout, by: float) -> Layout:
        self._each[layout.name] = self._each[layout.name] * by
        return replace(
            layout,
            bytes_opened=layout.bytes_opened * by,
            share_of_present=layout.share_of_present * by,
            growth=by,
        )


def listed(columns: Sequence[str]) -> str:
    """Formats columns as in ZORDER BY, and quotes parts of names where SQL requires it."""
    parts = [re.findall(r"`(?:[^`]|``)+`|[^.`]+", column) for column in columns]
    names = (
        ".".join(part if re.fullmatch(r"\w+|`.*`", part) else f"`{part}`" for part in column)
        for column in parts
    )
    return f"({', '.join(names)})"
