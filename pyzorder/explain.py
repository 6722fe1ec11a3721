"""Explains which files a query opens, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pyzorder import bridge, errors
from pyzorder.session import check_session
from pyzorder.text import html_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


NO_SCAN = "The query scans no Parquet or ORC table."
"""Printed if a query has no scan that pyzorder can explain."""

REMOVED = "no details: Spark removed the scan from the plan, because part of the query has no rows"
"""Printed for each table in `Explanation.removed`."""


@dataclass(frozen=True)
class ScanExplanation:
    """The effect of data skipping on one scan of a query. Each count is a number of files."""

    table: str
    total: int
    selected: int
    skipped: int
    unindexed: int
    reasons: tuple[str, ...]
    details: dict[str, Any]
    """The complete description from the JVM, including the fields above."""

    answered: int = 0
    """Files that are not opened because the index already has the result for all of their rows."""

    @property
    def opened(self) -> int:
        """Number of files that the scan opens: the selected and the unindexed files."""
        return self.selected + self.unindexed

    @property
    def skipped_by_joins(self) -> int:
        """Number of files that are skipped only because of join keys. It is 0 until the query has
        run."""
        return int(self.details.get("skippedByJoins", 0))

    @property
    def skipped_by_sketches(self) -> int:
        """Number of files that are skipped only because of sketches."""
        return int(self.details.get("skippedBySketches", 0))

    @property
    def as_of(self) -> datetime | None:
        """When the list of files was last verified. None if the query itself lists the files."""
        time = self.details.get("asOf")
        return None if time is None else datetime.fromtimestamp(time / 1000, timezone.utc)

    def __str__(self) -> str:
        return "\n  ".join([f"{self.table}: {self.summary}", *self._notes])

    @property
    def _notes(self) -> list[str]:
        keys = " and ".join(self.details.get("joinKeys", ()))
        joins = [f"{self.skipped_by_joins} skipped by join keys of {keys}"] if keys else []
        sketches = self.skipped_by_sketches
        lookups = [f"{sketches} skipped by sketches"] if sketches else []
        since = [f"as of {self.as_of.isoformat(' ', 'seconds')}"] if self.as_of else []
        return [*joins, *lookups, *self.reasons, *since]

    @property
    def summary(self) -> str:
        """Describes the opened files, for example as `opens 2 of 7 files (2 unindexed)`."""
        aside = [
            f"{count:,} {what}"
            for count, what in (
                (self.unindexed, "unindexed"),
                (self.answered, "answered from the index"),
            )
            if count
        ]
        files = "file" if self.total == 1 else "files"
        return f"opens {self.opened:,} of {self.total:,} {files}" + (
            f" ({', '.join(aside)})" if aside else ""
        )


class Explanation(list[ScanExplanation]):
    """The explanations of a query's scans, in the order of the plan. `str` joins their texts.

    Attributes:
        removed: the tables whose scans Spark removed from the plan while the query ran, because
            part of the query turned out to have no rows. It is not known whether they were read.
    """

    def __init__(
        self, scans: Iterable[ScanExplanation] = (), *, removed: Iterable[str] = ()
    ) -> None:
        super().__init__(scans)
        self.removed = tuple(removed)

    def __str__(self) -> str:
        removed = [f"{table}: {REMOVED}" for table in self.removed]
        return "\n".join([*map(str, self), *removed]) or NO_SCAN

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = ["table", "files", "selected", "skipped", "by joins", "by sketches", "unindexed",
                "answered", "why"]  # fmt: skip
        rows: list[list[Any]] = [
            [
                scan.table,
                scan.total,
                scan.selected,
                scan.skipped,
                scan.skipped_by_joins,
                scan.skipped_by_sketches,
                scan.unindexed,
                scan.answered,
                "; ".join(scan._notes),
            ]
            for scan in self
        ]
        rows += [[table, *[""] * 7, REMOVED] for table in self.removed]
        return html_table.table("The query opens the selected and the unindexed files", head, rows)


def explain(df: DataFrame) -> Explanation:
    """Reports the selected, skipped and unindexed files of every scan in a query's plan.

    The query is not run. The files skipped by join keys are known only after `df` itself has run,
    for example with `df.collect()`.

    Raises:
        ZOrderError: `df` is not a DataFrame or belongs to a Spark Connect session, or its session
            does not run pyzorder.
    """
    if bridge.is_connect(df):
        raise errors.connect_has_no_plan()
    from pyspark.sql import DataFrame

    if not isinstance(df, DataFrame):
        raise errors.not_a_dataframe(df)
    check_session(df.sparkSession)
    scans, removed = bridge.explain(df)
    return Explanation(map(scan_explanation, scans), removed=removed)


def scan_explanation(scan: dict[str, Any]) -> ScanExplanation:
    """Converts one element of the JVM's description to a `ScanExplanation`."""
    return ScanExplanation(
        table=scan["table"],
        total=scan["total"],
        selected=scan["selected"],
        skipped=scan["skipped"],
        unindexed=scan["unindexed"],
        reasons=tuple(scan.get("reasons", ())),
        details=scan,
        answered=scan.get("answered", 0),
    )
