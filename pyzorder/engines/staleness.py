"""Finds a table's files in its index instead of listing them, if the index is recent enough."""

from __future__ import annotations

import time

import pyarrow as pa
import pyarrow.compute as pc

from pyzorder.index import JournalState, Snapshot, Store, TableFolder, VisibleFiles, latest
from pyzorder.index.local_files import is_special
from pyzorder.index.stores import LocalStore, is_whole
from pyzorder.index.table_folder import leaves
from pyzorder.index.visible_files import is_hidden


def covered_files(
    store: Store, folder: TableFolder, staleness: float
) -> tuple[VisibleFiles, Snapshot | None] | None:
    """Returns the files that the index lists, and the index's snapshot.

    Returns None if the index is older than `staleness` seconds, if it does not cover the whole
    table, if a run is moving files, or if one of the paths leads to something other than a regular
    file, such as a pipe, which would block a reader.
    """
    state = JournalState(store, folder)
    if state.unfinished:
        return None
    snapshot = latest(store, folder)
    if snapshot is None or not _is_recent(snapshot, staleness):
        return None
    if JournalState(store, folder).token != state.token:
        return None
    rows = snapshot.rows
    sizes, times = (rows[name].to_numpy() for name in ("size", "modification_time"))
    files = VisibleFiles(folder.root, rows["path"].to_pylist(), sizes, times).sorted()
    if not _are_plain(rows):
        files = files.only([not is_forged(path) for path in files.paths])
    if isinstance(store, LocalStore) and any(map(is_special, map(files.place, range(len(files))))):
        return None
    return files, snapshot


def _are_plain(rows: pa.Table) -> bool:
    """Whether each part of each path begins with a letter or digit. If so, none of the paths is
    forged (see `is_forged`)."""
    part = r"[0-9A-Za-z][^/:\x00]*"
    return pc.all(pc.match_substring_regex(rows["path"], rf"^({part}/)*{part}$")).as_py() is True


def is_forged(path: str) -> bool:
    """True if a listing of a table's folder can never contain a file with this path."""
    return is_whole(path) or leaves(path) or is_hidden(path)


def _is_recent(snapshot: Snapshot, staleness: float) -> bool:
    coverage = snapshot.pointer.coverage
    if coverage is None or not coverage.is_whole:
        return False
    now = time.time() * 1000
    return now - staleness * 1000 <= coverage.listed_at <= now
