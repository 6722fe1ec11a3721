"""VACUUM without the jar: deletes what OPTIMIZE runs replaced, and what dead writers left.

What io.pyzorder.publish does with Garbage, for tables whose files lie in their folder.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyzorder.fallback import failures
from pyzorder.fallback.index_store import delete_replaced
from pyzorder.fallback.indexing import check_writable
from pyzorder.fallback.journal import JournalState, path_of
from pyzorder.fallback.own_files import TEMPORARY, is_full, remove
from pyzorder.fallback.read_settings import own_setting
from pyzorder.fallback.reader import target
from pyzorder.fallback.run_settings import RunSettings
from pyzorder.fallback.stores import LocalStore, TableFolder
from pyzorder.fallback.tables import Table
from pyzorder.fallback.writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

#: Milliseconds after which a file that is made in one piece has no writer any more.
_SURELY_DEAD = 3_600_000

_RUN = re.compile(r"_(\d+)")


@failures.told
def vacuum(
    spark: SparkSession,
    table: str,
    retain_hours: float | None = None,
    dry_run: bool = False,
    format: str = "parquet",
) -> list[str]:
    """Deletes what OPTIMIZE runs replaced longer ago than it is kept; the paths of the files.

    Args:
        table: a name as SQL writes it, or a path.
        retain_hours: None: as `spark.sql.zorder.vacuum.retentionHours` says, a week.
        dry_run: only tell the files; takes no lock.
        format: of a path's files, parquet or orc.

    Raises:
        ZOrderError: ZORDER_RETENTION_TOO_SHORT, queries may read the files;
            ZORDER_CONCURRENT_OPTIMIZE, another writer is at work; ZORDER_NO_SPACE, the disk is full
            and nothing may go without a lock.
    """
    found = target(spark, table, format)
    check_writable(found)
    hours = _retention(spark, found) if retain_hours is None else retain_hours
    if hours < _least(spark):
        raise failures.retention(hours)
    folder = TableFolder(found.location)
    if not os.path.isdir(folder.zorder):
        return []
    if dry_run:
        state = JournalState(LocalStore(), folder)
        now = int(time.time() * 1000)
        return list(_garbage(folder, hours, now, state.run if state.unfinished else 0))
    settings = RunSettings.of(spark)
    room, writer = _begin(folder, hours, settings)
    try:
        return room + delete(writer, hours, settings)
    finally:
        writer.abort()


def _begin(folder: TableFolder, hours: float, settings: RunSettings) -> tuple[list[str], Writer]:
    """Takes the lock, which takes room for a few records. Where a full disk has none, some is made
    first, of files that need no lock to go: the first result is what was deleted."""
    try:
        return [], Writer.begin(folder, "VACUUM", settings)
    except OSError as failure:
        files = list(_replaced(folder, hours)) if is_full(failure) else []
        if not files:
            raise
    for path in files:
        remove(path)
    return files, Writer.begin(folder, "VACUUM", settings)


def expired(spark: SparkSession, table: Table, writer: Writer) -> None:
    """Deletes, with the lock held, what has expired by the table's retention, if it can."""
    try:
        hours = max(_least(spark), _retention(spark, table))
        delete(writer, hours, RunSettings.of(spark))
    except OSError as failure:
        log.warning("Files that OPTIMIZE replaced in %s have expired and could not be deleted; "
                    "vacuum tries again: %s", writer.folder.root, failure)  # fmt: skip


def _retention(spark: SparkSession, table: Table) -> float:
    return float(own_setting(spark, "vacuum.retentionHours", "168", table.properties))


def _least(spark: SparkSession) -> int:
    return 0 if own_setting(spark, "vacuum.retentionCheck").lower() == "false" else 1


def delete(writer: Writer, hours: float, settings: RunSettings) -> list[str]:
    """Deletes files, the folders that this leaves empty, and states of the index."""
    found = list(_garbage(writer.folder, hours, writer.began, writer.run))
    told = settings.at_first("mid-vacuum")
    if found:
        settings.reach("vacuum-found")
    for count, path in enumerate(found, start=1):
        remove(path)
        told(count)
    for path in found:
        _remove_empty(os.path.dirname(path), writer.folder.zorder)
    delete_replaced(writer.folder, writer.began - hours * 3_600_000)
    return found


def _remove_empty(folder: str, top: str) -> None:
    """Removes a folder that is empty, and those around it that are then, but not `top`."""
    while folder.startswith(f"{top}/_retired/_") or folder.startswith(f"{top}/_staging/_"):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            pass  # by another file's turn
        except OSError:
            return
        folder = os.path.dirname(folder)


def _replaced(folder: TableFolder, hours: float) -> Iterator[str]:
    """Files that runs replaced which were done so long ago: of all commands only a RESTORE would
    read them, and none is given while one is under way."""
    state = JournalState(LocalStore(), folder)
    prepare = state.record("prepare")
    if state.unfinished and (prepare is None or prepare["operation"] == "RESTORE"):
        return
    retired, now = f"{folder.zorder}/_retired", time.time() * 1000
    for name in LocalStore().names(retired):
        run = _RUN.fullmatch(name)
        ended = LocalStore().stats([path_of(folder, int(run[1]), "done")]) if run else {}
        if any(now - done.modified >= hours * 3_600_000 for done in ended.values()):
            yield from _files_below(f"{retired}/{name}")


def _files_below(top: str) -> Iterator[str]:
    for around, _, files in os.walk(top):
        yield from (f"{around}/{file}" for file in sorted(files))


def _garbage(folder: TableFolder, hours: float, at: int, busy: int) -> Iterator[str]:
    """Files to be deleted at a time, milliseconds by the store's clock; `busy`: a run at work."""
    kept, store = hours * 3_600_000, LocalStore()
    for place in (folder.zorder, folder.journal, folder.index):
        halves = [f"{place}/{n}" for n in store.names(place) if n.startswith(TEMPORARY)]
        for path, seen in store.stats(halves).items():
            if at - seen.modified >= max(kept, _SURELY_DEAD):
                yield path
    for place in ("_retired", "_staging"):
        for name in store.names(f"{folder.zorder}/{place}"):
            run, top = _RUN.fullmatch(name), f"{folder.zorder}/{place}/{name}"
            if run is None or int(run[1]) == busy:
                continue
            done = path_of(folder, int(run[1]), "done")
            ended = store.stats([done, top])
            if place == "_staging" or at - ended.get(done, ended[top]).modified >= kept:
                yield from _files_below(top)
