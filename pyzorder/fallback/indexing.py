"""Creates and refreshes a table's index, as CREATE and REFRESH SKIPPING INDEX do."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyzorder import errors
from pyzorder.fallback import failures, statistics
from pyzorder.fallback.reader import target
from pyzorder.fallback.session_settings import (
    matches_field_ids,
    matches_positions,
    own_setting,
    read_settings,
)
from pyzorder.fallback.tables import Table, frame_of
from pyzorder.index import snapshot_writer
from pyzorder.index.entries import FileEntry
from pyzorder.index.local_files import strange_link
from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.snapshots import Snapshot, latest
from pyzorder.index.stores import LocalStore, Stat, Store, is_whole
from pyzorder.index.table_folder import TableFolder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

#: Names that mark the folders of other table formats.
_FOREIGN = {"_delta_log": "Delta", ".hoodie": "Hudi"}


@failures.explained
def create_index(
    spark: SparkSession, table: str, columns: Sequence[str] = (), format: str = "parquet"
) -> int:
    """Creates a table's index from the statistics of all of its files.

    Reads all values of the columns once. Sessions that run pyzorder's jar keep the index up to
    date when they write to the table. After writes by other sessions, call `refresh_index`.

    Args:
        table: the table's name in SQL syntax, or the path of its folder.
        columns: dotted names of the columns to index. By default, these are the columns of the
            existing index or, if there is none, the table's first columns, up to
            `spark.sql.zorder.index.maxColumns`.
        format: the format of the files if `table` is a path, either parquet or orc.

    Returns:
        The number of files in the index.

    Raises:
        ZOrderError: the fallback does not support the table or its store.
    """
    found = target(spark, table, format)
    _check_writable(found)
    rows = frame_of(spark, found)
    wanted = _columns(spark, found, rows.schema, columns)
    settings = read_settings(spark)
    folder = TableFolder(found.location)
    entries = statistics.entries(LocalStore(), folder, statistics.collect(rows, wanted), settings)
    pointer = snapshot_writer.publish(
        LocalStore(),
        folder,
        lambda old: wanted,
        _only_current(folder, {entry.path for entry in entries}),
        _as_clustered(folder, entries),
        denied(spark, found),
    )
    return pointer.num_files


@failures.explained
def refresh_index(spark: SparkSession, table: str, format: str = "parquet") -> int:
    """Updates the index to match the table's current files.

    Reads only files that are new or have changed since they were indexed. Creates the index if
    there is none.

    Args:
        table: the table's name in SQL syntax, or the path of its folder.
        format: the format of the files if `table` is a path, either parquet or orc.

    Returns:
        The number of files in the index.

    Raises:
        ZOrderError: the fallback does not support the table or its store.
    """
    found = target(spark, table, format)
    _check_writable(found)
    folder = TableFolder(found.location)
    known = latest(LocalStore(), folder)
    if known is None:
        return create_index(spark, table, format=format)
    settings = read_settings(spark)
    valid = {
        (f"{folder.root}/{path}", Stat(size, modified))
        for path, size, modified, text in zip(
            *(known.rows[name].to_pylist() for name in (
                "path", "size", "modification_time", "read_settings")), strict=True)
        if text.startswith(settings.structural + " | ")
    }  # fmt: skip
    rows = frame_of(spark, found)
    able = {(c.path, c.data_type) for c in statistics.indexable(rows.schema, found)}
    columns = [c for c in known.columns if (c.path, c.data_type) in able]
    current = LocalStore().stats([path for path, _ in valid])
    stale = [path for path, stat in valid if current.get(path) == stat]
    unknown = rows.where(_not_among(stale, current)) if stale else rows
    found_now = statistics.collect(unknown, columns)
    entries = statistics.entries(LocalStore(), folder, found_now, settings)
    pointer = snapshot_writer.publish(
        LocalStore(),
        folder,
        lambda old: old,
        _only_current(folder, {entry.path for entry in entries}),
        entries,
        denied(spark, found),
    )
    return pointer.num_files


def _as_clustered(folder: TableFolder, entries: Sequence[FileEntry]) -> list[FileEntry]:
    """Copies the clustering columns of unchanged files from the old index to the new entries."""
    known = latest(LocalStore(), folder)
    if known is None:
        return list(entries)
    rows = known.rows.select(["path", "size", "modification_time", "clustered_by"]).to_pylist()
    before = {tuple(list(row.values())[:3]): tuple(row["clustered_by"]) for row in rows}
    return [
        replace(entry, clustered_by=before.get((entry.path, entry.size, entry.modified), ()))
        for entry in entries
    ]


def check_served(table: Table) -> Store:
    """Returns the table's store, or raises a ZOrderError if the table cannot be indexed."""
    if table.obstacle:
        raise failures.obstacle(table.name, table.obstacle)
    if table.store is None:
        raise failures.unreachable(table.location)
    if table.store.stats([table.location]):
        raise failures.single_file(table.name)
    names = set(table.store.names(table.location))
    formats = [_FOREIGN[name] for name in sorted(names & set(_FOREIGN))]
    if any(n.endswith(".metadata.json") for n in table.store.names(f"{table.location}/metadata")):
        formats.append("Iceberg")
    if formats:
        raise failures.foreign(table.name, formats[0])
    if "_spark_metadata" in names:
        raise failures.streaming_sink(table.location)
    if not table.is_catalog and isinstance(table.store, LocalStore):
        link = strange_link(table.location)
        if link is not None:
            raise errors.linked_data_file(link)
    return table.store


def _check_writable(table: Table) -> None:
    """Raises a ZOrderError unless the fallback may publish an index in the table's own folder.

    Other writers may publish there at the same time, so the fallback needs an atomic
    create-if-absent, which it has only on local disks.
    """
    if not table.obstacle and is_whole(table.location):
        raise failures.remote_writes(table.location)
    if not table.obstacle and not os.path.exists(table.location):
        raise failures.path_not_found(table.location)
    check_served(table)


def denied(spark: SparkSession, table: Table) -> Callable[[IndexedColumn], bool]:
    """Returns a function that is true for columns that must not be recorded in an index.

    Both the session and the table can exclude columns.
    """
    name = "index.denyColumns"
    texts = [own_setting(spark, name), table.properties.get(f"zorder.{name}", "")]
    paths = [split(name) for text in texts for name in _listed(text)]

    def is_denied(column: IndexedColumn) -> bool:
        if column.inputs:
            return bool({name.lower() for name in column.inputs} & {no[0].lower() for no in paths})
        curve = re.fullmatch(r"zorder_value\((.*)\)", column.path[0])
        named = [split(n) for n in _listed(curve[1])] if curve else [column.path]
        return any(
            [part.lower() for part in path[: len(no)]] == [part.lower() for part in no]
            for path in named
            for no in paths
        )

    return is_denied


_PART = r"(?:[^.`,\s]+|`(?:[^`]|``)+`)"


def _listed(text: str) -> list[str]:
    return re.findall(rf"{_PART}(?:\.{_PART})*", text)


def split(name: str) -> tuple[str, ...]:
    """Splits a column's dotted name into its parts."""
    return tuple(
        part[1:-1].replace("``", "`") if part.startswith("`") else part
        for part in re.findall(_PART, name)
    )


def _columns(
    spark: SparkSession, table: Table, schema: StructType, names: Sequence[str]
) -> list[IndexedColumn]:
    able, is_denied = statistics.indexable(schema, table), denied(spark, table)
    if not names:
        return statistics_columns(spark, table, able)
    able = [column for column in able if not is_denied(column)]
    wanted = [named(table, able, name) for name in names]
    return [] if _finds_otherwise(spark, table) else wanted


def statistics_columns(
    spark: SparkSession, table: Table, able: Sequence[IndexedColumn],
    clustering: Sequence[IndexedColumn] = (),
) -> list[IndexedColumn]:  # fmt: skip
    """Returns the columns to index. Denied columns are never included.

    The result consists of the clustering columns, and of the columns of the existing index or, if
    there is none, the table's first columns. It is empty if Spark does not match columns by name.
    """
    if _finds_otherwise(spark, table):
        return []
    is_denied, known = denied(spark, table), _latest(table)
    able = [column for column in able if not is_denied(column)]
    limit = int(own_setting(spark, "index.maxColumns", "32", table.properties))
    kept = [c for c in able if known is not None and c in known.columns] or able[:limit]
    return [column for column in able if column in kept or column in clustering]


def _latest(table: Table) -> Snapshot | None:
    return None if table.store is None else latest(table.store, table.folder)


def _finds_otherwise(spark: SparkSession, table: Table) -> bool:
    """Whether Spark finds columns by position or field id rather than by name. If so, no statistics
    are kept."""
    positions = table.format == "orc" and matches_positions(read_settings(spark))
    return positions or matches_field_ids(spark)


def named(table: Table, able: Sequence[IndexedColumn], name: str) -> IndexedColumn:
    """Returns the column with a dotted name, ignoring case.

    Raises:
        ZOrderError: there is no such column.
    """
    path = [part.lower() for part in split(name)]
    found = [c for c in able if [part.lower() for part in c.path] == path]
    if len(found) != 1:
        raise failures.no_column(table.name, name, [".".join(column.path) for column in able])
    return found[0]


def _only_current(folder: TableFolder, replaced: set[str]) -> Callable[[pa.Table], list[bool]]:
    """Returns a function that keeps entries whose files are unchanged and not in `replaced`."""

    def keep(rows: pa.Table) -> list[bool]:
        names = rows["path"].to_pylist()
        columns = (rows[name].to_pylist() for name in ("size", "modification_time"))
        stats = [Stat(*pair) for pair in zip(*columns, strict=True)]
        now = LocalStore().stats(folder.resolve(name) for name in names)
        return [
            name not in replaced and now.get(folder.resolve(name)) == stat
            for name, stat in zip(names, stats, strict=True)
        ]

    return keep


def _not_among(paths: Sequence[str], stats: dict[str, Stat]) -> str:
    from pyzorder.fallback.selection import SkippedFile, among

    return f"NOT ({among(SkippedFile(path, *stats[path]) for path in paths)})" if paths else "true"
