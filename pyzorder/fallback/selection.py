"""Determines which files of a table are ruled out by a query's conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from sqlglot import exp

from pyzorder.fallback import failures
from pyzorder.fallback.columns import Columns, Found
from pyzorder.fallback.session_settings import is_on, own_setting, read_settings, setting
from pyzorder.fallback.statistics_frame import statistics_frame
from pyzorder.fallback.tables import Table
from pyzorder.index.journal import JournalState
from pyzorder.index.predicates.index_filters import IndexFilters
from pyzorder.index.predicates.monotonic_functions import Types
from pyzorder.index.snapshot_statistics import SnapshotStatistics
from pyzorder.index.snapshots import Snapshot, latest
from pyzorder.index.stores import is_whole
from pyzorder.index.table_folder import leaves

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Maximum number of files to name in a query. With more files, Spark would take too long to plan
#: the query.
MOST_NAMED = 20_000

#: Paths that need no escaping in SQL.
_QUOTABLE = re.compile(r"[^'\\]+")


def spelled(path: str) -> str:
    """Encodes a path as Spark does in `_metadata.file_path`, except for the scheme.

    Spark uses java.net.URI, which does not encode non-ASCII letters.
    """
    return "".join(c if c > "\x7f" else quote(c, safe="/=:@+,!$&'()*;~") for c in path)


#: SQL for the path, size and modification time of a row's file, in the same form as
#: SkippedFile.key.
KEY = (
    "concat_ws(' ', regexp_replace(_metadata.file_path, '^file:/+', '/'), "
    "CAST(_metadata.file_size AS STRING), "
    "CAST(unix_millis(_metadata.file_modification_time) AS STRING))"
)


@dataclass(frozen=True)
class SkippedFile:
    """A file without matching rows.

    The size and modification time are those that the file had when it was indexed.
    """

    path: str
    size: int
    modified: int

    @property
    def key(self) -> str:
        """The value of `KEY` for the file's rows."""
        return f"{spelled(self.path)} {self.size} {self.modified}"


@dataclass(frozen=True)
class Selection:
    """The files that a table's index rules out for a condition.

    Attributes:
        table: the table's name in SQL syntax.
        indexed: number of files in the index.
        skipped: the files without matching rows.
        reasons: the reasons why other files are not skipped.
    """

    table: str
    indexed: int = 0
    skipped: tuple[SkippedFile, ...] = ()
    reasons: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        text = f"{self.table}: {len(self.skipped)} of {self.indexed} indexed files skipped"
        return text + "".join(f"\n  {reason}" for reason in self.reasons)

    def filter_text(self) -> str | None:
        """Returns a condition that excludes the skipped files, or None if there are none.

        Spark evaluates the condition for each file that it lists. The condition identifies files by
        path, size and modification time. New files, and files that have changed since they were
        indexed, are therefore read.
        """
        if not self.skipped:
            return None
        return f"NOT ({among(self.skipped)})"


def among(files: Iterable[SkippedFile]) -> str:
    """Returns a condition that is true for the rows of these files."""
    keys = (file.key.replace("\\", "\\\\").replace("'", "\\'") for file in files)
    named = ", ".join(f"'{key}'" for key in keys)
    return f"{KEY} IN ({named})"


def check_settled(table: Table) -> int:
    """Checks that the table's last run is not moving files, and returns the number of the run.

    While a run moves files, a listing may lack some of the old files and some of the new ones.

    Raises:
        ZOrderError: the run is moving files (ZORDER_FALLBACK_UNFINISHED).
    """
    if not table.location or table.store is None:
        return 0
    state = JournalState(table.store, table.folder)
    if state.unfinished and state.record("retire") is not None:
        raise failures.unfinished(table.folder.root, state.run)
    return state.run


def select_files(
    spark: SparkSession,
    table: Table,
    frame: DataFrame,
    conditions: Sequence[exp.Expression],
    unqualified: Callable[[tuple[str, ...]], tuple[str, ...]],
) -> Selection:
    """Selects the files that at least one of the conditions rules out.

    Args:
        conditions: conditions, all of which are TRUE for each relevant row.
        unqualified: removes the table's qualifier from a column's name, or raises NotUnderstood.
    """
    obstacle = _obstacle(spark, table)
    if obstacle:
        return Selection(table.name, reasons=(obstacle,))
    if table.store is None:
        return Selection(table.name, reasons=("the table's files are not accessible from Python",))
    snapshot = latest(table.store, table.folder)
    if snapshot is None:
        return Selection(table.name, reasons=("the table has no index",))
    if any(name.lower() == "_metadata" for name in frame.columns):
        return Selection(table.name, reasons=("the table has a column named _metadata",))
    columns = Columns(
        frame.schema, table, snapshot.columns, is_on(spark, "spark.sql.caseSensitive")
    )
    named: set[int] = set()

    def find(parts: tuple[str, ...]) -> Found:
        found = columns.find(unqualified(parts))
        named.add(found.number)
        return found

    filters = IndexFilters(find, _types(spark, frame))
    filtered = [(condition, filters.of(condition)) for condition in conditions]
    reasons = tuple(f"not usable: {c.sql('spark')}" for c, text in filtered if text is None)
    tests = [text for _, text in filtered if text is not None]
    skipped, failed = _skipped(spark, table, snapshot, tests, sorted(named))
    return Selection(table.name, snapshot.pointer.num_files, tuple(skipped), reasons + failed)


def _obstacle(spark: SparkSession, table: Table) -> str:
    if table.obstacle:
        return table.obstacle
    if own_setting(spark, "skipping.enabled", "true", table.properties).lower() == "false":
        return "spark.sql.zorder.skipping.enabled is false"
    if setting(spark, "spark.sql.timestampType").upper() != "TIMESTAMP_LTZ":
        return "spark.sql.timestampType is not TIMESTAMP_LTZ"
    return ""


def _types(spark: SparkSession, frame: DataFrame) -> Types:
    from pyspark.sql import functions as F

    def ask(texts: list[str]) -> list[str]:
        schema = frame.select(*[F.expr(text).alias(f"t{i}") for i, text in enumerate(texts)]).schema
        return [f.dataType.simpleString() for f in schema.fields]

    as_string = is_on(spark, "spark.sql.legacy.typeCoercion.datetimeToString.enabled")
    return Types(ask, setting(spark, "spark.sql.session.timeZone"), as_string)


def _skipped(
    spark: SparkSession,
    table: Table,
    snapshot: Snapshot,
    tests: list[str],
    columns: list[int],
) -> tuple[list[SkippedFile], tuple[str, ...]]:
    """Returns the unchanged files that the tests rule out, and the reasons why no more files are
    ruled out."""
    # Only catalog tables have partitions outside their folder. For other tables, absolute paths are
    # not trusted.
    outside = table.is_catalog and bool(table.partitions)
    statistics = SnapshotStatistics(snapshot, read_settings(spark))
    rows = snapshot.rows.select(["path", "size", "modification_time", "num_records"]).to_pydict()
    usable = [i for i in range(snapshot.rows.num_rows) if statistics.usable[i]]
    ruled_out = {i for i in usable if rows["num_records"][i] == 0}
    reasons: tuple[str, ...] = ()
    if len(usable) < len(rows["path"]):
        reasons = ("some files were indexed with different read settings",)
    if tests and usable:
        frame = statistics_frame(spark, statistics, columns, usable)
        failed: tuple[str, ...] = ()
        try:
            ruled_out |= _false(frame, " AND ".join(tests))
        except Exception:  # a test may fail, so evaluate each test separately
            for test in tests:
                try:
                    ruled_out |= _false(frame, test)
                except Exception:
                    failed = ("evaluating a condition on bounds failed",)
        reasons += failed
    known = {
        table.folder.resolve(rows["path"][i]): (rows["size"][i], rows["modification_time"][i])
        for i in sorted(ruled_out)
        if not leaves(rows["path"][i]) and (outside or not is_whole(rows["path"][i]))
    }
    # A cached listing in Spark may still match the entry of a file that has since changed. Such a
    # file must not be skipped.
    now = table.store.stats(known) if table.store is not None else {}
    named = [
        SkippedFile(path, *entry)
        for path, entry in known.items()
        if now.get(path) == entry and _QUOTABLE.fullmatch(path)
    ]
    if len(named) > MOST_NAMED:
        reasons += (f"only {MOST_NAMED:,} of {len(named):,} files without matches are skipped",)
    return named[:MOST_NAMED], reasons


def _false(frame: DataFrame, test: str) -> set[int]:
    from pyspark.sql import functions as F

    kept = frame.select("i", F.expr(f"coalesce({test}, true)").alias("kept"))
    return {row["i"] for row in kept.where("NOT kept").collect()}
