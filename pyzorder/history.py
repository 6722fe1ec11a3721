"""The runs that rewrote a table, as far as its journal tells."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from pyzorder import bridge, errors, html_table
from pyzorder.session import check_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Run:
    """One writing command; sizes are in bytes."""

    run: int
    operation: str
    """`OPTIMIZE`, `RESTORE`, `VACUUM`; empty: its record is torn."""
    began: datetime
    ended: datetime | None
    """None: it is at work, or died; the next writing command then finishes or undoes it."""
    committed: bool
    """Whether it replaced files."""
    removed: int
    removedBytes: int
    added: int
    addedBytes: int
    kept: int
    """Of the removed files those that VACUUM has not deleted."""
    keptBytes: int

    @property
    def took(self) -> timedelta | None:
        """None: it has not ended."""
        return None if self.ended is None else self.ended - self.began

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
        ZOrderError: the session does not run pyzorder, or is a Spark Connect client's.
        AnalysisException: there is no such table.
    """
    if bridge.is_connect(spark):
        raise errors.connect_has_no_layout()
    check_session(spark)
    runs = []
    for run in bridge.history(spark, table):
        began, ended = (moment(run.pop(name)) for name in ("began", "ended"))
        assert began is not None
        runs.append(Run(began=began, ended=ended, **run))
    return History(runs)


def moment(milliseconds: int | None) -> datetime | None:
    """Milliseconds since 1970 as a time in UTC."""
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def clock(time: datetime) -> str:
    """`2024-01-31 23:59:59 UTC`."""
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"
