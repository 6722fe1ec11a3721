"""pyzorder.explain: which files a query opens, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyzorder import bridge, errors
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

    def __str__(self) -> str:
        line = (
            f"{self.table}: {self.selected} of {self.total} files selected, "
            f"{self.skipped} skipped, {self.unindexed} unindexed"
        )
        if self.answered:
            line += f", {self.answered} answered from the index"
        return "\n".join([line, *(f"  {reason}" for reason in self.reasons)])


class Explanation(list[ScanExplanation]):
    """One entry a scan, in the plan's order; prints as lines of text."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no Parquet or ORC table is scanned"

    __repr__ = __str__


def explain(df: DataFrame) -> Explanation:
    """Selected, skipped and unindexed files of every scan in `df`'s plan; runs no query.

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
