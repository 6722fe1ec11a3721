"""Reads the runs that are still recorded in a table's journal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from pyzorder.session import check_session
from pyzorder.table import quoted
from pyzorder.text import html_table
from pyzorder.text.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: For each field of `Run`, the SQL expression that computes it from `optimize_history`.
FIELDS = {
    "run": "run",
    "operation": "operation",
    "began": "unix_millis(began)",
    "ended": "unix_millis(ended)",
    "committed": "committed",
    "removed": "removed",
    "removedBytes": "removed_bytes",
    "added": "added",
    "addedBytes": "added_bytes",
    "kept": "kept",
    "keptBytes": "kept_bytes",
    "partitions": "partitions",
    "seconds": "seconds",
    "undone": "undone",
}


@dataclass(frozen=True)
class Run:
    """One run of OPTIMIZE, RESTORE or VACUUM. Sizes are in bytes."""

    run: int
    operation: str
    """`OPTIMIZE`, `RESTORE` or `VACUUM`; empty if the run's record is damaged."""
    began: datetime | None
    """Start time according to the writer's clock; None if the run's record is damaged."""
    ended: datetime | None
    """End time according to the store's clock. None if the run is in progress, or if it was killed
    and will be completed or undone by the next OPTIMIZE, RESTORE or VACUUM."""
    committed: bool
    """Whether the run replaced files."""
    removed: int
    removedBytes: int
    added: int
    addedBytes: int
    kept: int
    """Number of removed files that VACUUM has not deleted."""
    keptBytes: int
    partitions: int
    """Number of folders in which the run removed or added data files."""
    seconds: float | None
    """Time from `began` to `ended`; None if the run has not ended, or its record is damaged."""
    undone: bool
    """Whether a later RESTORE has undone the run."""

    @property
    def took(self) -> timedelta | None:
        """The value of `seconds` as a timedelta."""
        return None if self.seconds is None else timedelta(seconds=self.seconds)

    @property
    def result(self) -> str:
        """Describes the outcome of the run in words."""
        if self.ended is None:
            return "unfinished"
        if self.committed:
            replaced = f"replaced {counted(self.removed, 'file')} with {self.added:,}"
            return f"{replaced}, undone" if self.undone else replaced
        return (
            "deleted expired files, if any" if self.operation == "VACUUM" else "replaced no files"
        )


class History(list[Run]):
    """The recorded runs of a table, oldest first."""

    @property
    def kept_bytes(self) -> int:
        """Total size of the replaced files that VACUUM has not deleted."""
        return sum(run.keptBytes for run in self)

    @property
    def can_restore(self) -> bool:
        """Whether there is an OPTIMIZE that has not been undone."""
        return any(r.operation == "OPTIMIZE" and r.committed and not r.undone for r in self)

    def _repr_html_(self) -> str:
        rows = [
            [run.run, run.operation, clock(run.began), run.result, run.removedBytes, run.addedBytes]
            for run in self
        ]
        head = ["run", "operation", "began", "result", "bytes removed", "bytes added"]
        return html_table.table("Runs", head, rows)


def read(spark: SparkSession, table: str) -> History:
    """Reads the runs of a table from its journal.

    Args:
        table: the table's name in SQL syntax, or the path of its folder.

    Raises:
        ZOrderError: the session does not run pyzorder.
        AnalysisException: the table does not exist.
    """
    check_session(spark)
    rows = spark.sql(f"SELECT {', '.join(FIELDS.values())} FROM optimize_history({quoted(table)})")
    return History(run_of(**dict(zip(FIELDS, row, strict=True))) for row in rows.collect())


def run_of(*, operation: str | None, began: int | None, ended: int | None, **rest: Any) -> Run:
    """Converts a selected row to a `Run`."""
    return Run(operation=operation or "", began=moment(began), ended=moment(ended), **rest)


def moment(milliseconds: int | None) -> datetime | None:
    """Converts milliseconds since the epoch to a time in UTC."""
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def clock(time: datetime | None) -> str:
    """Formats a time, such as `2024-01-31 23:59:59 UTC`. None becomes an empty string."""
    return "" if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC"
