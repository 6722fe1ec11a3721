"""OPTIMIZE … ZORDER BY without the jar: lock → choose → lay out and write → verify → publish."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyzorder.fallback import choice, failures, footers, statistics, vacuum
from pyzorder.fallback.indexing import check_writable, denied, named, statistics_columns
from pyzorder.fallback.journal import JournalState
from pyzorder.fallback.layout import key_of
from pyzorder.fallback.read_settings import changed_settings, is_on, own_setting
from pyzorder.fallback.reader import target
from pyzorder.fallback.recovery import take_over
from pyzorder.fallback.rewrite import REWRITING, Rewrite
from pyzorder.fallback.run_records import FileRef
from pyzorder.fallback.run_settings import RunSettings
from pyzorder.fallback.snapshots import latest
from pyzorder.fallback.stores import LocalStore, TableFolder
from pyzorder.fallback.tables import Table, frame_of, partition_columns
from pyzorder.fallback.writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Optimized:
    """What an OPTIMIZE did."""

    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    partitions: int = 0


@failures.told
def optimize(
    spark: SparkSession,
    table: str,
    zorder_by: Sequence[str],
    where: str | None = None,
    full: bool = False,
    format: str = "parquet",
) -> Optimized:
    """Rewrites a table so that files hold rows that are near each other in all clustering columns.

    Partitions that are clustered so, with no other files, stay as they are. Replaced files are
    kept for a week, or as `spark.sql.zorder.vacuum.retentionHours` says.

    Args:
        table: a name as SQL writes it, or a path.
        zorder_by: dotted names of the clustering columns.
        where: a condition on partition columns: which partitions to rewrite.
        full: rewrite them in any case.
        format: of a path's files, parquet or orc.

    Raises:
        ZOrderError: ZORDER_FALLBACK_TABLE or _STORE, the table cannot be optimized here;
            ZORDER_CONCURRENT_OPTIMIZE, ZORDER_CONFLICT: others write, nothing was changed.
    """
    found = target(spark, table, format)
    check_writable(found)
    if isinstance(zorder_by, str):
        raise failures.refused(found.name, f"needs a list of columns: write ['{zorder_by}']")
    _check_settings(spark, found)
    writer = Writer.begin(TableFolder(found.location), "OPTIMIZE", RunSettings.of(spark))
    try:
        _refresh(spark, found)
        vacuum.expired(spark, found, writer)
        with changed_settings(spark, REWRITING):
            run = _Run(spark, found, writer, zorder_by)
            return run.execute(run.choose(where, full))
    finally:
        writer.abort()
        _refresh(spark, found)


@failures.told
def recover(spark: SparkSession, table: str, format: str = "parquet") -> bool:
    """Finishes or undoes a run whose writer died; False: there is none.

    Raises:
        ZOrderError: ZORDER_CONCURRENT_OPTIMIZE, the writer may be alive.
    """
    found = target(spark, table, format)
    check_writable(found)
    state = JournalState(LocalStore(), TableFolder(found.location))
    if state.unfinished:
        take_over(state, RunSettings.of(spark))
        _refresh(spark, found)
    return state.unfinished


def _check_settings(spark: SparkSession, table: Table) -> None:
    if table.is_bucketed:
        raise failures.refused(table.name, "is bucketed, and cannot be optimized")
    for key, served in (
        ("optimize.curve", "zorder"),
        ("optimize.method", "boundaries"),
        ("publish.method", "rename"),
    ):
        asked = own_setting(spark, key, served, table.properties)
        if asked.lower() != served:
            reason = f"asks for zorder.{key} {asked}, which only the jar serves"
            raise failures.refused(table.name, reason)


def _refresh(spark: SparkSession, table: Table) -> None:
    """Makes Spark list the table's files again."""
    if table.is_catalog:
        spark.sql(f"REFRESH TABLE {table.name}")


class _Run:
    """One OPTIMIZE that holds the lock."""

    def __init__(
        self, spark: SparkSession, table: Table, writer: Writer, zorder_by: Sequence[str]
    ) -> None:
        self._spark, self._table, self._writer = spark, table, writer
        self._folder = writer.folder
        self._rows = frame_of(spark, table)
        self._partitions = partition_columns(table, self._rows.columns)
        self._is_denied = denied(spark, table)
        able = statistics.indexable(self._rows.schema, table)
        self._clustering = [named(table, able, name) for name in zorder_by]
        if not zorder_by or len(set(self._clustering)) < len(zorder_by):
            raise failures.refused(table.name, "needs clustering columns, each named once")
        for column in self._clustering:
            key_of(column)
        self._indexed = statistics_columns(spark, table, able, self._clustering)

    def choose(self, where: str | None, full: bool) -> dict[FileRef, int]:
        """The files to rewrite, each with its number of rows."""
        rows = self._rows
        if where is not None:
            rows = choice.of_partitions(self._spark, rows, where, sorted(self._partitions))
        files = choice.files_of(rows, self._folder)
        names = [column.name for column in self._clustering]
        return files if full else choice.unclustered(files, latest(self._folder), names)

    def execute(self, files: dict[FileRef, int]) -> Optimized:
        """Rewrites the files."""
        if not files:
            return Optimized()
        refs = sorted(files, key=lambda ref: ref.path)
        try:
            return self._execute(refs, files)
        except Exception as failure:
            reason = self._writer.reason(failure, refs)
            if reason is failure:
                raise
            raise reason from failure

    def _execute(self, refs: list[FileRef], files: dict[FileRef, int]) -> Optimized:
        target_size = own_setting(
            self._spark, "optimize.targetFileSize", "256m", self._table.properties
        )
        groups = choice.groups_of(files, target_size)
        self._writer.check_alone([group.folder for group in groups])
        read = [self._footer(ref) for ref in refs]
        size = sum(ref.size for ref in refs)
        if shutil.disk_usage(self._folder.root).free < size:
            raise failures.no_space(self._folder.root, size)
        data = [name for name in self._rows.columns if name not in self._partitions]
        rewrite = Rewrite(
            self._spark, self._table, self._writer, self._rows, self._clustering, self._indexed,
            data,
        )  # fmt: skip
        entries = rewrite.run(refs, groups, read)

        def check_rows() -> None:
            """What was written must hold as many rows as what was read, by the files' footers."""
            paths = [self._writer.staged(entry.path) for entry in entries]
            stored = sum(footers.read(path, self._table.format).rows for path in paths)
            if not sum(f.rows for f in read) == sum(e.num_records for e in entries) == stored:
                raise failures.row_count(self._folder.root, sum(f.rows for f in read), stored)

        names = {column.name for column in self._indexed}
        self._writer.publish(
            refs,
            entries,
            lambda old: [c for c in old if c.name not in names] + self._indexed,
            self._is_denied,
            check_rows,
        )
        return Optimized(
            len(refs), len(entries), size, sum(e.size for e in entries), len(groups)
        )  # fmt: skip

    def _footer(self, ref: FileRef) -> footers.Footer:
        """Raises ZOrderError: the file has columns that rewriting it would lose."""
        footer = footers.read(self._folder.resolve(ref.path), self._table.format)
        case_sensitive = is_on(self._spark, "spark.sql.caseSensitive")
        lost = footers.undeclared(footer, self._rows.schema, case_sensitive)
        if lost:
            raise failures.undeclared(self._table.name, lost, ref.path)
        return footer
