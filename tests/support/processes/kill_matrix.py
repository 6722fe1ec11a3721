"""Counts kills by point, and reads after them. pytest prints the table at the end of a run.

A cell counts the reads that returned every row exactly once, and separately the other reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from rich.table import Table

#: When a table is read: before, during (or after recovery was killed, too) or after recovery.
STAGES = ("before", "during", "after")

#: By point, stage and result: how often a process was killed at a point ("killed", no stage), and
#: how often reads at a stage were "right" or "wrong".
cells: Counter[tuple[str, str, str]] = Counter()


def killed_at(point: str) -> None:
    """Counts a process that was killed at this point."""
    cells[point, "", "killed"] += 1


@contextmanager
def reads(stage: str, *points: str) -> Iterator[None]:
    """Wraps the assertions on reads at a stage of recovery, after kills at these points."""
    told = "wrong"
    try:
        yield
        told = "right"
    finally:
        cells.update((point, stage, told) for point in points)


def kills() -> int:
    """The number of kills at all points."""
    return sum(count for (_, _, what), count in cells.items() if what == "killed")


def table() -> Table:
    """The counts, with a row per point and a column per stage."""
    shown = Table("killed at", "times", *(f"read {stage} recovery" for stage in STAGES))
    for point in sorted({point for point, _, _ in cells}):
        texts = [
            str(cells[point, stage, "right"] or "")
            + (f" and {wrong} WRONG" if (wrong := cells[point, stage, "wrong"]) else "")
            for stage in STAGES
        ]
        shown.add_row(point, str(cells[point, "", "killed"]), *texts)
    return shown
