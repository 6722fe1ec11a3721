"""Counts the kills at each fail point, and the reads after these kills. pytest prints the table at
the end of a run.

Each cell contains the number of reads that returned every row exactly once, and the number of all
other reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from rich.table import Table

#: When a table is read: before recovery, during recovery (or after the recovering process was
#: killed), or after recovery.
STAGES = ("before", "during", "after")

#: The counts by point, stage and result. The result is "killed" (with an empty stage) for a kill,
#: and "right" or "wrong" for a read.
cells: Counter[tuple[str, str, str]] = Counter()


def killed_at(point: str) -> None:
    """Counts a kill at the given fail point."""
    cells[point, "", "killed"] += 1


@contextmanager
def reads(stage: str, *points: str) -> Iterator[None]:
    """Wraps the assertions on a read at the given stage of recovery. Counts the read for each of
    the given fail points."""
    told = "wrong"
    try:
        yield
        told = "right"
    finally:
        cells.update((point, stage, told) for point in points)


def kills() -> int:
    """The total number of kills."""
    return sum(count for (_, _, what), count in cells.items() if what == "killed")


def table() -> Table:
    """The table of counts, with a row per point and a column per stage."""
    shown = Table("killed at", "times", *(f"read {stage} recovery" for stage in STAGES))
    for point in sorted({point for point, _, _ in cells}):
        texts = [
            str(cells[point, stage, "right"] or "")
            + (f" and {wrong} WRONG" if (wrong := cells[point, stage, "wrong"]) else "")
            for stage in STAGES
        ]
        shown.add_row(point, str(cells[point, "", "killed"]), *texts)
    return shown
