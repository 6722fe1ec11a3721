"""pyzorder.explain: which files a query opens, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyzorder import bridge, errors, html_table
from pyzorder.session import check_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ScanExplanation:
    """What skipping did to one scan of a query; counts are of files."""

    table: str
    total: int
    selected: int
    skipped: int
    unindexed: int
    reasons: tuple[str, ...]
    details: dict[str, Any]
    """Everything the JVM said, the fields above included."""

    answered: int = 0
    """Files that are not opened because the index answers for all of their rows."""

    @property
    def opened(self) -> int:
        """How many files the scan opens: the selected ones, and those it knows nothing about."""
        return self.selected + self.unindexed

    @property
    def skipped_by_joins(self) -> int:
        """How many of the skipped files only the keys of joins rule out; known after the query."""
        return int(self.details.get("skippedByJoins", 0))

    def __str__(self) -> str:
        keys = " and ".join(self.details.get("joinKeys", ()))
        joins = [f"{self.skipped_by_joins} skipped by join keys of {keys}"] if keys else []
        lines = [f"{self.table}: {self.summary}", *joins, *self.reasons]
        return "\n  ".join(lines)

    @property
    def summary(self) -> str:
        """`opens 2 of 7 files (2 not indexed)`: what the scan opens, in words."""
        aside = [
            f"{count:,} {what}"
            for count, what in (
                (self.unindexed, "not indexed"),
                (self.answered, "answered from the index"),
            )
            if count
        ]
        files = "file" if self.total == 1 else "files"
        return f"opens {self.opened:,} of {self.total:,} {files}" + (
            f" ({', '.join(aside)})" if aside else ""
        )


class Explanation(list[ScanExplanation]):
    """One entry a scan, in the plan's order; prints as lines of text."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no Parquet or ORC table is scanned"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = ["table", "files", "selected", "skipped", "by joins", "unindexed", "answered", "why"]
        rows = [
            [
                scan.table,
                scan.total,
                scan.selected,
                scan.skipped,
                scan.skipped_by_joins,
                scan.unindexed,
                scan.answered,
                "; ".join(scan.reasons),
            ]
            for scan in self
        ]
        return html_table.table("Files that the query opens: selected and unindexed", head, rows)


def explain(df: DataFrame) -> Explanation:
    """Selected, skipped and unindexed files of every scan in `df`'s plan; runs no query.

    What the keys of joins skip is known only once `df` itself has run, by `df.collect()` say.

    Raises:
        ZOrderError: `df` is no DataFrame, is a Spark Connect client's, or its session does not
            run pyzorder.
    """
    if bridge.is_connect(df):
        raise errors.connect_has_no_plan()
    from pyspark.sql import DataFrame

    if not isinstance(df, DataFrame):
        raise errors.not_a_dataframe(df)
    check_session(df.sparkSession)
    return Explanation(scan_explanation(scan) for scan in bridge.explain(df))


def scan_explanation(scan: dict[str, Any]) -> ScanExplanation:
    """One element of the JVM's answer."""
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
