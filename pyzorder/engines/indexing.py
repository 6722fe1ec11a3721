"""Indexes the files that other engines have written, based on the files' Parquet footers.

Statistics are taken from a footer only if they provably describe what Spark reads
(`pyzorder.index.parquet.footers`). The bounds of other columns remain unknown. Files without a
readable footer remain unindexed, so queries open them.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa

from pyzorder.engines import failures
from pyzorder.engines.tables import (
    Table,
    check_plain,
    has_other_format,
    locate,
    opening,
    table_of,
)
from pyzorder.index import (
    JournalState,
    Snapshot,
    Store,
    TableFolder,
    VisibleFile,
    VisibleFiles,
    latest,
    visible_files,
)
from pyzorder.index.coverage import Coverage, still_covers
from pyzorder.index.entries import ColumnStatistics, FileEntry, is_foreign, unchanged
from pyzorder.index.parquet.footers import FooterReader, columns_of
from pyzorder.index.pointers import MOST_READ, IndexedColumn, Pointer, read_pointer, versions
from pyzorder.index.read_settings import STRUCTURAL_DEFAULTS, ReadSettings
from pyzorder.index.snapshot_writer import check_format, publish
from pyzorder.index.stored_types import schema_of
from pyzorder.index.stores import Stat, is_whole, plain

#: The number of threads that read footers. PyArrow releases the GIL while it reads.
_THREADS = 16

#: Maximum number of columns with statistics in a new index. The Spark setting
#: spark.sql.zorder.index.maxColumns has the same default.
_MOST_COLUMNS = 32

#: The names of the index columns that contain z-values.
_Z_VALUES = re.compile(r"zorder_value\(")

#: The properties that identify a file's row in the index: path, size and modification time.
Key = tuple[str, int, int]


@dataclass
class Outcome:
    """The result of indexing a table.

    Attributes:
        columns: the columns of the index.
        total: the number of files in the table.
        indexed: the files that were added to the index.
        unindexed: the files that remain unindexed, with the reasons.
        unknown: for each column that has no bounds in some of the added files, the number of these
            files. Files in which the column has no values do not count.
        version: the version of the new snapshot; None if none was written.
    """

    columns: list[IndexedColumn]
    total: int
    indexed: list[str] = field(default_factory=list)
    unindexed: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    version: int | None = None


@opening
def index_files(
    path: str | os.PathLike[str], columns: Sequence[Sequence[str]] = (), dry_run: bool = False
) -> Outcome:
    """Adds a table's unindexed files to its index, without using Spark.

    Other writers may publish at the same time. Their entries are kept.

    Args:
        path: the folder of a table of Parquet files, on a local disk.
        columns: the columns to index if there is no index yet, each as the parts of its name. By
            default, the first columns of the first file are indexed.
        dry_run: whether to leave the index unchanged.

    Raises:
        ZOrderError: the files cannot be indexed without Spark, or the folder cannot be written to.
    """
    if is_whole(plain(os.fspath(path))):
        raise failures.not_local(os.fspath(path))
    location, folder, store = locate(path, None)
    check_plain(store, folder.root, location)
    check_format(store, folder)
    listing = _Listing.of(store, folder, location)
    table = listing.table
    before = _last_columns(store, folder)
    if before is None and not table.files:
        raise failures.no_files(location)
    if before is None and has_other_format(table.files.paths):
        raise failures.other_format(location)
    wanted = _columns(table, before, columns)
    known = listing.known
    missing = [file for file in table.files if _key(file) not in known]
    outcome = Outcome(wanted, len(table.files))
    entries = _entries(table, missing, wanted, outcome)
    if not dry_run and (entries or before is not None):
        try:
            outcome.version = _publish(listing, wanted, entries)
            if before is None:  # only a listing from now on can show that the index is complete
                listing = _Listing.of(store, folder, location)
                outcome.version = _publish(listing, wanted, [])
        except OSError as failure:
            raise failures.not_written(folder.zorder, failure) from failure
    return outcome


# ---- the listing --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Listing:
    """A listing of a table, with the state of its index and journal at that time.

    Attributes:
        at: when it began, in milliseconds since the epoch.
        since: the pointer to the index when it began; None if there was no usable one.
        visible: all files below the folder with the index, including files that do not belong to
            the table.
        is_settled: true if no run was moving files.
    """

    table: Table
    at: int
    since: Pointer | None
    visible: VisibleFiles
    is_settled: bool

    @classmethod
    def of(cls, store: Store, folder: TableFolder, location: str) -> _Listing:
        before = JournalState(store, folder)
        snapshot = latest(store, folder)
        at = int(time.time() * 1000)
        visible = visible_files(store, folder)
        after = JournalState(store, folder)
        return cls(
            table_of(location, folder, store, visible, snapshot),
            at,
            None if snapshot is None else snapshot.pointer,
            visible,
            before.token == after.token and not after.unfinished,
        )

    @property
    def known(self) -> set[Key]:
        """The keys of the index's rows."""
        return set() if self.table.snapshot is None else set(_keys(self.table.snapshot.rows))

    @property
    def gone(self) -> set[Key]:
        """The keys of the index's rows that do not describe any file in the folder.

        While a run moves files, the rows of both its old and its new files are kept. Rows of files
        in other folders are also kept, because these folders may belong to partitions that are
        recorded only in a catalog.
        """
        if not self.is_settled:
            return set()
        return {k for k in self.known - set(map(_key, self.visible)) if not is_whole(k[0])}

    def coverage(self, old: Snapshot | None, rows: pa.Table) -> Coverage | None:
        """Returns the coverage of a snapshot with these rows; None if a file's row may be
        missing."""
        known = set(_keys(rows))
        pointer = None if old is None else old.pointer
        holds = self.is_settled and still_covers(self.since, pointer)
        if not holds or any(is_whole(name) for name, _, _ in known):
            return None
        is_complete = all(file.size == 0 or _key(file) in known for file in self.visible)
        return Coverage(self.at, is_whole=True) if is_complete else None


def _key(file: VisibleFile) -> Key:
    return file.path, file.size, file.modified


def _keys(rows: pa.Table) -> list[Key]:
    columns = (rows[name].to_pylist() for name in ("path", "size", "modification_time"))
    return list(zip(*columns, strict=True))


# ---- entries ------------------------------------------------------------------------------------


def _columns(
    table: Table, before: Sequence[IndexedColumn] | None, named: Sequence[Sequence[str]]
) -> list[IndexedColumn]:
    """Returns the columns to index: those of the last index or, if there is none, the named
    columns. If no columns are named, returns the first columns that can have statistics."""
    if before is not None and named:
        raise failures.already_indexed(table.location)
    if before:
        return list(before)
    able = _able(table)
    if not named:
        return able[:_MOST_COLUMNS]
    return list(dict.fromkeys(_named(table, able, parts) for parts in named))


def _last_columns(store: Store, folder: TableFolder) -> tuple[IndexedColumn, ...] | None:
    """Returns the columns of the newest readable pointer, even if its snapshot is unusable.

    Returns None if there is no index, and an empty tuple if no pointer is readable.
    """
    known = versions(store, folder)
    for version in reversed(known[-MOST_READ:]):
        try:
            columns = read_pointer(store, folder, version).columns
            schema_of(columns)  # fails if a type is not one of Spark's types
            return columns
        except Exception:  # damaged, in another format, or deleted
            continue
    return () if known else None


def _able(table: Table) -> list[IndexedColumn]:
    """Returns the columns of the first readable file that can have statistics."""
    partitions = {column.name.lower() for column in table.partitions}
    for file in table.files:
        try:
            found = columns_of(file.place)
        except (OSError, pa.ArrowException):
            continue
        return [column for column in found if column.path[0].lower() not in partitions]
    return []


def _named(table: Table, able: Sequence[IndexedColumn], parts: Sequence[str]) -> IndexedColumn:
    lowered = [part.lower() for part in parts]
    found = [column for column in able if [part.lower() for part in column.path] == lowered]
    if len(found) != 1:
        known = [column.name for column in able]
        raise failures.no_column(table.location, ".".join(parts), known)
    return found[0]


def _entries(
    table: Table, files: Sequence[VisibleFile], columns: Sequence[IndexedColumn], outcome: Outcome
) -> list[FileEntry]:
    """Reads footers, and records in `outcome` which files get an entry.

    Raises:
        ZOrderError: a file is an ORC file.
    """
    partitions = {column.name.lower() for column in table.partitions}
    # Spark takes the values of partition columns from the names of folders. Files do not contain
    # z-values or the values of expressions, but that does not mean that these are null.
    stored = [
        column
        for column in columns
        if column.path[0].lower() not in partitions
        and not _Z_VALUES.match(column.path[0])
        and not column.inputs
    ]
    reader = FooterReader(stored)
    own = [file for file in files if not is_foreign(table.store, table.folder, file.place)]
    with ThreadPoolExecutor(_THREADS) as pool:
        footers = list(pool.map(lambda file: _footer(reader, table, file), own))
    still = unchanged(table.store, [(f.place, Stat(f.size, f.modified)) for f in own])
    settings = ReadSettings(STRUCTURAL_DEFAULTS, None).fingerprint
    outcome.unindexed = {f.path: "it is reached through another user's link" for f in files}
    entries = []
    for file, footer in zip(own, footers, strict=True):
        if isinstance(footer, str):
            outcome.unindexed[file.path] = footer
        elif (file.place, Stat(file.size, file.modified)) not in still:
            outcome.unindexed[file.path] = "it changed while it was read"
        else:
            del outcome.unindexed[file.path]
            outcome.indexed.append(file.path)
            rows, statistics = footer
            entries.append(FileEntry(*_key(file), rows, (), settings, statistics))
            for column in stored:
                known = statistics.get(column, ColumnStatistics())
                if known.bounds is None and not known.empty:
                    outcome.unknown[column.name] = outcome.unknown.get(column.name, 0) + 1
    return entries


def _footer(
    reader: FooterReader, table: Table, file: VisibleFile
) -> tuple[int, dict[IndexedColumn, ColumnStatistics]] | str:
    """Returns the row count and statistics in a file's footer, or the reason why the file gets no
    entry."""
    if not file.has_text_name:
        return failures.NOT_TEXT
    try:
        return reader.read(file.place)
    except (OSError, pa.ArrowException) as failure:
        if _begins_like_orc(file.place):
            raise failures.orc_footers(table.location) from None
        return "its footer cannot be read: " + (str(failure).splitlines() or [""])[0].rstrip(".")


def _begins_like_orc(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(3) == b"ORC"
    except OSError:
        return False


def _publish(
    listing: _Listing, columns: Sequence[IndexedColumn], entries: Sequence[FileEntry]
) -> int:
    """Publishes the entries, and returns the version.

    If another writer publishes first, its rows are kept: only rows that were in the index before
    the files were listed are replaced or dropped.
    """
    table = listing.table
    added = {entry.path for entry in entries}
    dropped = listing.gone | {key for key in listing.known if key[0] in added}
    return publish(
        table.store,
        table.folder,
        lambda old: old or columns,
        lambda rows: [key not in dropped for key in _keys(rows)],
        entries,
        coverage=listing.coverage,
    ).version
