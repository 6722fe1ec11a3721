"""Which processes were killed where, and what was read then: printed at the end of a run of pytest.

A cell counts the reads that gave every row once; one that did not is told beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from rich.table import Table

#: Of reads: before recovery, while it is under way or was killed itself, after it.
STAGES = ("before", "during", "after")

#: How often a process was killed at a point ("killed"), and how often a stage's reads were right
#: or wrong, each by point, stage and one of "killed", "right", "wrong".
cells: Counter[tuple[str, str, str]] = Counter()


def killed_at(point: str) -> None:
    """A process was killed there."""
    cells[point, "", "killed"] += 1


@contextmanager
def reads(stage: str, *points: str) -> Iterator[None]:
    """Around what is asserted at a stage of the recovery from kills at these points."""
    told = "wrong"
    try:
        yield
        told = "right"
    finally:
        cells.update((point, stage, told) for point in points)


def kills() -> int:
    """Of all points."""
    return sum(count for (_, _, what), count in cells.items() if what == "killed")


def table() -> Table:
    """Points × stages."""
    shown = Table("killed at", "times", *(f"read {stage} recovery" for stage in STAGES))
    for point in sorted({point for point, _, _ in cells}):
        texts = [
            str(cells[point, stage, "right"] or "")
            + (f" and {wrong} WRONG" if (wrong := cells[point, stage, "wrong"]) else "")
            for stage in STAGES
        ]
        shown.add_row(point, str(cells[point, "", "killed"]), *texts)
    return shown
