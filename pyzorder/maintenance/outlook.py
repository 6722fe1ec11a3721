"""Examines a table: what an OPTIMIZE would do, which files are not indexed, what has expired."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyzorder import bridge, history
from pyzorder.failures import condition

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

RUNS = 5
"""Number of past runs from which the speed of an OPTIMIZE is estimated."""


@dataclass(frozen=True)
class Part:
    """A partition, or a whole table without partitions, in which an OPTIMIZE would replace files.

    `bytes` is the total size of these files. `saved` is how much cheaper a lookup would be, in
    bytes, and `worth` is the same for all expected lookups. These are the recent recorded lookups
    that read the partition, if queries are recorded. `pays` tells whether the rewrite pays off.
    """

    where: str | None
    """A condition that selects the partition; None if the table is not partitioned."""
    files: int
    bytes: int
    written: int
    saved: float
    worth: float
    pays: bool


@dataclass(frozen=True)
class Outlook:
    """The state of a table, and what an OPTIMIZE without ZORDER BY would do to it."""

    target: str
    """The table, as written in statements."""
    columns: tuple[str, ...]
    """The clustering columns of the OPTIMIZE; empty if it would only merge small files."""
    z_order: str
    """The ZORDER BY clause of the OPTIMIZE. Empty unless the recorded workload has chosen the
    columns. It then names the columns, because an OPTIMIZE without it would choose again, or is
    AUTO if the table is also cut by the queries of the workload."""
    is_auto: bool
    """Whether the recorded workload chooses the clustering columns."""
    kind: str
    """The verdict on the OPTIMIZE: `nothing`, `pays`, `useless` or `harms`."""
    sentence: str
    """The verdict as a sentence."""
    choice: str = ""
    """Why the recorded workload has chosen the columns; empty unless it has."""
    parts: tuple[Part, ...] = ()
    files: int | None = None
    """Number of data files; None if the table has no index."""
    unindexed: int = 0
    clustered_by: tuple[str, ...] = ()
    """The columns by which files are clustered now."""
    lookup_share: float | None = None
    """The share of files that a lookup on a clustering column opens, averaged over the columns."""
    expired_files: int = 0
    expired_bytes: int = 0
    """Number and size of the replaced files that VACUUM would delete."""
    kept_bytes: int = 0
    """Size of all replaced files that have not been deleted yet."""
    speed: float | None = None
    """Bytes that recent runs of OPTIMIZE have replaced per second; None if there were none."""

    @property
    def has_index(self) -> bool:
        """Whether the table has an index."""
        return self.files is not None


def examine(spark: SparkSession, target: str) -> Outlook:
    """Examines a table. Changes nothing.

    Args:
        target: the table, as written in statements.

    Raises:
        AnalysisException: the table does not exist, or is not a plain Parquet or ORC table.
    """
    found = bridge.outlook(spark, target)
    columns = tuple(found["columns"])
    health = describe(spark, found["target"])
    clustered = [row for row in health if row.clustered]
    shares = [row.lookup_share for row in clustered if row.lookup_share is not None]
    expired = spark.sql(f"VACUUM {found['target']} DRY RUN").collect()
    runs = history.read(spark, found["target"])
    return Outlook(
        target=found["target"],
        columns=columns,
        z_order=found["zOrderBy"],
        is_auto=found["isAuto"],
        kind=found["kind"],
        sentence=found["sentence"],
        choice=found["choice"],
        parts=by_partition(Part(**part) for part in found["parts"]),
        files=max((row.files for row in health), default=None),
        unindexed=max((row.unindexed for row in health), default=0),
        clustered_by=tuple(row.column for row in clustered),
        lookup_share=sum(shares) / len(shares) if shares else None,
        expired_files=len(expired),
        expired_bytes=sum(row["size"] for row in expired),
        kept_bytes=runs.kept_bytes,
        speed=speed_of(runs),
    )


def by_partition(folders: Iterable[Part]) -> tuple[Part, ...]:
    """Combines the folders that one condition selects, because a statement cannot tell them
    apart."""
    found: dict[str | None, Part] = {}
    for folder in folders:
        known = found.get(folder.where, Part(folder.where, 0, 0, 0, 0.0, 0.0, False))
        found[folder.where] = Part(
            folder.where,
            known.files + folder.files,
            known.bytes + folder.bytes,
            known.written + folder.written,
            known.saved + folder.saved,
            known.worth + folder.worth,
            known.pays or folder.pays,
        )
    return tuple(found.values())


def describe(spark: SparkSession, target: str) -> list[Row]:
    """Returns the rows of DESCRIBE SKIPPING INDEX; none if the table has no index."""
    from pyspark.errors import AnalysisException

    try:
        return spark.sql(f"DESCRIBE SKIPPING INDEX ON {target}").collect()
    except AnalysisException as failure:
        if condition(failure) != "ZORDER_INDEX_NOT_FOUND":
            raise
        return []


def speed_of(runs: history.History) -> float | None:
    """Returns how many bytes per second recent runs of OPTIMIZE have replaced."""
    timed = [
        (run.removedBytes, run.seconds)
        for run in runs
        if run.operation == "OPTIMIZE" and run.committed and run.seconds
    ][-RUNS:]
    seconds = sum(taken for _, taken in timed)
    return sum(replaced for replaced, _ in timed) / seconds if seconds else None
