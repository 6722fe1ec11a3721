"""Runs OPTIMIZE … ZORDER BY without the jar, by writing a clustered, indexed copy of a table.

The table is not changed, so no lock or journal is needed. Readers of the table are not affected,
unless the location of a catalog table is switched to the copy.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyzorder import errors
from pyzorder.fallback import failures, statistics, switch
from pyzorder.fallback.declared import undeclared
from pyzorder.fallback.indexing import check_served, denied, named, statistics_columns
from pyzorder.fallback.layout import key_of, laid_out
from pyzorder.fallback.reader import target
from pyzorder.fallback.selection import check_settled
from pyzorder.fallback.session_settings import changed_settings, own_setting, read_settings
from pyzorder.fallback.sources import SourceFile, groups_of, source_files
from pyzorder.fallback.stores import located, store_of
from pyzorder.fallback.tables import Table, frame_of, partition_columns
from pyzorder.index import snapshot_writer
from pyzorder.index.entries import FileEntry
from pyzorder.index.local_files import strange
from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.stores import LocalStore, Store, is_whole
from pyzorder.index.table_folder import TableFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Size of row groups in bytes. It is small so that a file has several row groups with narrow
#: bounds.
ROW_GROUP = 32 << 20

#: Settings for copying rows. They stop Spark from skipping files, padding CHAR values and rebasing
#: dates.
COPYING = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.readSideCharPadding": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.zorder.skipping.enabled": "false",
}


@dataclass(frozen=True)
class Optimized:
    """A clustered copy of a table.

    Attributes:
        path: the copy's folder.
        files: number of data files in the copy.
        bytes: total size of these files in bytes.
        rows: number of rows, which is the same in the copy and in the table.
        partitions: number of partitions in the copy; 1 if it has no partition columns.
        is_switched: whether the table's location has been switched to the copy.
    """

    path: str
    files: int
    bytes: int
    rows: int
    partitions: int
    is_switched: bool = False


@failures.explained
def optimize(
    spark: SparkSession,
    table: str,
    zorder_by: Sequence[str],
    *,
    to: str,
    switch_location: bool = False,
    format: str = "parquet",
) -> Optimized:
    """Writes a copy of a table, clustered by the given columns, and the copy's index.

    The table's files are not changed. Spark writes the data files to any store that it supports,
    using the session's settings for compression and timestamps. The index is written with Hadoop's
    FileSystem. A Spark Connect client has no FileSystem, so it must be able to access the store
    through a mount or with PyArrow.

    Args:
        table: the table's name in SQL syntax, or the path of its folder.
        zorder_by: dotted names of the clustering columns.
        to: the copy's folder, which must be empty or not exist.
        switch_location: whether to switch the location of an external catalog table to the copy
            once the copy is complete. The old folder is not deleted.
        format: the format of the files if `table` is a path, either parquet or orc.

    Raises:
        ZOrderError: the condition is ZORDER_FALLBACK_TARGET if `to` cannot be used,
            ZORDER_FALLBACK_TABLE if the table cannot be copied or its location cannot be switched,
            ZORDER_SYMBOLIC_LINK if a data file is a link to another owner's file, ZORDER_ROW_COUNT
            if the copy's row counts differ from the table's, and ZORDER_CONFLICT if another writer
            has changed the table.
    """
    found = target(spark, table, format)
    check_served(found)
    _check_arguments(spark, found, zorder_by)
    if switch_location:
        switch.check(found)
    with changed_settings(spark, COPYING):
        copy = _Copy(spark, found, zorder_by, to)
        done = copy.run()
        if switch_location:
            switch.execute(spark, found, copy.folder.root, copy.sources)
    return replace(done, is_switched=switch_location)


def _check_arguments(spark: SparkSession, table: Table, zorder_by: Sequence[str]) -> None:
    if isinstance(zorder_by, str):
        raise failures.not_a_list(table.name, zorder_by)
    if table.is_bucketed:
        raise failures.bucketed(table.name)
    for key, served in (("curve", "zorder"), ("method", "boundaries")):
        asked = own_setting(spark, f"optimize.{key}", served, table.properties)
        if asked.lower() != served:
            raise failures.unsupported_setting(table.name, key, asked, served)


class _Copy:
    """Writes one copy of a table."""

    def __init__(
        self, spark: SparkSession, table: Table, zorder_by: Sequence[str], to: str
    ) -> None:
        self._spark, self._table = spark, table
        run = check_settled(table)
        self._rows = frame_of(spark, table)
        columns = partition_columns(table, self._rows.columns)
        self._partitions = [name for name in self._rows.columns if name in columns]
        able = statistics.indexable(self._rows.schema, table)
        self._clustering = [named(table, able, name) for name in zorder_by]
        if not zorder_by or len(set(self._clustering)) < len(zorder_by):
            raise failures.no_clustering_columns(table.name)
        for column in self._clustering:
            key_of(column)
        self._indexed = statistics_columns(spark, table, able, self._clustering)
        self.folder = TableFolder(located(spark, to))
        self._store = _empty_target(spark, table, self.folder)
        #: The files to copy.
        self.sources = source_files(self._rows, self._partitions)
        _check_links(table, self.sources)
        if check_settled(table) != run:
            raise errors.conflict(f"{table.name} was optimized by another command")
        paths = [file.path for file in self.sources]
        lost = undeclared(spark, paths, table.format, self._rows.schema) if paths else []
        if lost:
            raise failures.undeclared(table.name, lost)

    def run(self) -> Optimized:
        """Writes the copy, compares its row counts with the table's, and publishes its index."""
        if not self.sources:
            raise failures.no_files(self._table.name, "")
        if not is_whole(self.folder.root):
            os.makedirs(self.folder.root, exist_ok=True)
        # Claim the folder first, to prevent two copies from being written to the same path.
        if not self._store.create(self.folder.incarnation, str(uuid.uuid4()).encode()):
            raise failures.target_claimed(self.folder.root)
        self._write()
        copied = self._spark.read.schema(self._rows.schema).format(self._table.format)
        rows = copied.load(self.folder.root)
        files = source_files(rows, self._partitions)
        _check_rows(self._table.name, self.sources, files)
        entries = self._entries(rows)
        if {e.path for e in entries} != {file.path_below(self.folder.root) for file in files}:
            raise failures.unseen(self.folder.root)
        is_denied = denied(self._spark, self._table)
        snapshot_writer.publish(
            self._store, self.folder, lambda old: self._indexed, entries=entries,
            is_denied=is_denied,
        )  # fmt: skip
        return Optimized(
            self.folder.root,
            len(files),
            sum(file.size for file in files),
            sum(file.rows for file in files),
            len({file.partition for file in files}),
        )

    def _write(self) -> None:
        target_size = own_setting(
            self._spark, "optimize.targetFileSize", "256m", self._table.properties
        )
        groups = groups_of(self.sources, target_size)
        ordered = laid_out(self._spark, self._rows, self._partitions, groups, self._clustering)
        writer = ordered.write.mode("append").format(self._table.format)
        writer = writer.options(**{"maxRecordsPerFile": "0", "parquet.block.size": str(ROW_GROUP)})
        writer.partitionBy(*self._partitions).save(self.folder.root)

    def _entries(self, rows: DataFrame) -> list[FileEntry]:
        found = statistics.collect(rows, self._indexed)
        entries = statistics.entries(self._store, self.folder, found, read_settings(self._spark))
        names = _names(self._clustering)
        return [replace(entry, clustered_by=names) for entry in entries]


def _names(columns: Sequence[IndexedColumn]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


def _empty_target(spark: SparkSession, table: Table, folder: TableFolder) -> Store:
    """Returns the store of the copy's folder.

    Raises:
        ZOrderError: the store cannot be reached, or the folder is not empty or overlaps the table's
            folder.
    """
    store, root = store_of(spark, folder.root), folder.root
    if store is None:
        raise failures.unreachable(root)
    for outer, inner in ((table.location, root), (root, table.location)):
        if f"{inner}/".startswith(f"{outer}/"):
            raise failures.target_overlaps(root, table.location)
    if store.stats([root]) or store.names(root):
        raise failures.target_not_empty(root)
    return store


def _check_links(table: Table, sources: Sequence[SourceFile]) -> None:
    """Raises if a file is reached through a link whose owner may lack access to the file."""
    if isinstance(table.store, LocalStore):
        for path in (file.path for file in sources):
            is_inside = path.startswith(f"{table.location}/")
            if strange(table.location if is_inside else os.path.dirname(path), path):
                raise errors.linked_data_file(path)


def _check_rows(table: str, sources: Sequence[SourceFile], files: Sequence[SourceFile]) -> None:
    """Raises unless every partition has the same number of rows in the table and in the copy."""
    read, written = Counter[str](), Counter[str]()
    for counted, listed in ((read, sources), (written, files)):
        for file in listed:
            counted[file.partition] += file.rows
    if read != written:
        raise failures.row_count(table, read.total(), written.total())
