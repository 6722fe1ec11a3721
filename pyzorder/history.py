"""The runs that rewrote a table, as far as its journal tells."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from pyzorder import html_table
from pyzorder.session import check_session
from pyzorder.table import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What a run's fields are among the columns of `optimize_history`.
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
}


@dataclass(frozen=True)
class Run:
    """One writing command; sizes are in bytes."""

    run: int
    operation: str
    """`OPTIMIZE`, `RESTORE`, `VACUUM`; empty: its record is torn."""
    began: datetime | None
    """By the writer's clock; None: its record is torn."""
    ended: datetime | None
    """By the store's clock; None: it is at work, or died, and the next writing command finishes or
    undoes it."""
    committed: bool
    """Whether it replaced files."""
    removed: int
    removedBytes: int
    added: int
    addedBytes: int
    kept: int
    """Of the removed files those that VACUUM has not deleted."""
    keptBytes: int
    partitions: int
    """Folders of data files that it worked on."""
    seconds: float | None
    """From `began` to `ended`; None: it has not ended, or its record is torn."""

    @property
    def took(self) -> timedelta | None:
        """`seconds` as a timedelta."""
        return None if self.seconds is None else timedelta(seconds=self.seconds)

    @property
    def result(self) -> str:
        """What came of it, in words."""
        if self.ended is None:
            return "not finished"
        if self.committed:
            return f"{self.removed:,} files replaced by {self.added:,}"
        return "deleted expired files" if self.operation == "VACUUM" else "replaced nothing"


class History(list[Run]):
    """The runs, the first one first."""

    @property
    def kept_bytes(self) -> int:
        """Size of the replaced files that VACUUM has not deleted."""
        return sum(run.keptBytes for run in self)

    def _repr_html_(self) -> str:
        rows = [
            [run.run, run.operation, clock(run.began), run.result, run.removedBytes, run.addedBytes]
            for run in self
        ]
        head = ["run", "operation", "began", "result", "bytes removed", "bytes added"]
        return html_table.table("Runs", head, rows)


def read(spark: SparkSession, table: str) -> History:
    """The runs of a table that is named as in SQL, or by the path of its folder.

    Raises:
        ZOrderError: the session does not run pyzorder.
        AnalysisException: there is no such table.
    """
    check_session(spark)
    rows = spark.sql(f"SELECT {', '.join(FIELDS.values())} FROM optimize_history({quoted(table)})")
    return History(run_of(**dict(zip(FIELDS, row, strict=True))) for row in rows.collect())


def run_of(*, operation: str | None, began: int | None, ended: int | None, **rest: Any) -> Run:
    """A row as it was selected."""
    return Run(operation=operation or "", began=moment(began), ended=moment(ended), **rest)


def moment(milliseconds: int | None) -> datetime | None:
    """Milliseconds since 1970 as a time in UTC."""
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def clock(time: datetime | None) -> str:
    """`2024-01-31 23:59:59 UTC`; empty: not known."""
    return "" if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC"
