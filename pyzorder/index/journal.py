"""Reads the journal of the runs that rewrite a table (sql/FORMAT.md, section "Journal").

Only pyzorder's jar writes the journal. A record is treated as missing if it cannot be parsed or
contains an unsafe path (see `table_folder.leaves`).
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from pyzorder.index.stores import Store, is_whole
from pyzorder.index.table_folder import TableFolder, is_id, leaves

#: Required fields of each kind of record, in addition to the fields that all records have.
FIELDS: dict[str, tuple[str, ...]] = {
    "prepare": ("operation", "owner", "host", "pid", "started", "began", "lease"),
    "retire": ("retire", "add", "folders"),
    "switch": ("database", "table", "to", "read"),
    "partitions": ("database", "table", "to", "partitions", "read"),
    "outcome": ("outcome", "by"),
    "done": (),
}

#: JSON longer than `_FEW` bytes must have at least `_TOKEN` bytes per bracket or comma on average.
_FEW, _TOKEN = 1 << 20, 5

#: Run numbers have at most 18 digits and no leading zeros. Files with other names are ignored.
_RECORD = re.compile(rf"_([1-9][0-9]{{0,17}})\.({'|'.join(FIELDS)})")


class FileRef(NamedTuple):
    """A data file that a journal record lists.

    Attributes:
        path: its path, relative to the table's folder or with a scheme.
        size: its size in bytes.
        modified: its modification time in milliseconds since the epoch.
    """

    path: str
    size: int
    modified: int

    @property
    def folder(self) -> str:
        """The folder that contains the file; empty for the table's folder."""
        return self.path.rpartition("/")[0]


class Overlay(NamedTuple):
    """The corrections that readers apply to a listing while a run is unfinished.

    Attributes:
        shown: files that belong to the table, wherever they currently are.
        hidden: files that do not belong to the table.
        committed: whether `shown` contains the run's new files instead of the old ones.
        incarnation: the incarnation id in the names of the run's markers.
        marked: the modification times of the markers, by folder. If a marker's current modification
            time differs from the recorded one, the folder is a copy, so none of the recorded times
            apply to the files in it. Older records do not contain these times.
    """

    shown: tuple[FileRef, ...]
    hidden: tuple[FileRef, ...]
    committed: bool
    incarnation: str
    marked: dict[str, int]


class JournalState:
    """The state of a journal's last run, according to one listing of the journal."""

    def __init__(self, store: Store, folder: TableFolder) -> None:
        self._store, self.folder = store, folder
        found = [m for m in map(_RECORD.fullmatch, store.names(folder.journal)) if m]
        #: Number of the last run; 0 if there is none.
        self.run = max((int(m[1]) for m in found), default=0)
        self.kinds = frozenset(m[2] for m in found if int(m[1]) == self.run)

    @property
    def unfinished(self) -> bool:
        """Whether the run has no `done` record."""
        return self.run > 0 and "done" not in self.kinds

    @property
    def token(self) -> tuple[int, frozenset[str]]:
        """A token that changes whenever a record is added."""
        return self.run, self.kinds

    def record(self, kind: str) -> dict[str, Any] | None:
        """Reads a record of the run. Returns None if the record is missing or invalid."""
        if kind not in self.kinds:
            return None
        try:
            text = self._store.read(f"{self.folder.journal}/_{self.run}.{kind}")
        except FileNotFoundError:
            return None
        return parsed(text, kind)

    @property
    def overlay(self) -> Overlay | None:
        """The corrections that a listing needs, or None if the listing is correct."""
        if not self.unfinished or "partitions" in self.kinds:
            return None
        record = self.record("retire")
        if record is None:
            return None
        old, new = _files(record["retire"]), _files(record["add"])
        outcome = self.record("outcome")
        committed = outcome is not None and outcome["outcome"] == "COMMIT"
        shown, hidden = (new, old) if committed else (old, new)
        marked = dict(zip(record["folders"], record.get("marked", ()), strict=False))
        return Overlay(shown, hidden, committed, record["incarnation"], marked)


def has_too_many_tokens(text: bytes) -> bool:
    """Whether JSON has more tokens than pyzorder would put into a file of this length.

    When parsed, JSON like `[],[],[]` takes far more memory than its length suggests.
    """
    return len(text) > _FEW and sum(map(text.count, (b"[", b"{", b","))) > len(text) // _TOKEN


def parsed(text: bytes, kind: str) -> dict[str, Any] | None:
    """Parses a record.

    Returns:
        The record, or None if it is incomplete, is of another kind, or contains an unsafe path.
    """
    try:
        if has_too_many_tokens(text):
            return None
        record = json.loads(text)
        is_whole_record = record["record"] == kind and is_id(record["incarnation"])
        is_whole_record &= all(name in record for name in FIELDS[kind])
        lists = (record.get(name, []) for name in ("folders", "marked"))
        is_whole_record &= all(isinstance(listed, list) for listed in lists)
        is_known = kind != "outcome" or record["outcome"] in ("COMMIT", "ABORT")
        is_inside = not any(map(leaves, _named(record)))
        return record if is_whole_record and is_known and is_inside else None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _named(record: dict[str, Any]) -> list[str]:
    lists = (record.get(name, []) for name in ("retire", "add", "read"))
    files = [ref.path for listed in lists for ref in _all(listed)]
    return files + [folder for folder in record.get("folders", []) if folder != ""]


def _all(listed: list[dict[str, Any]]) -> list[FileRef]:
    return [FileRef(f["path"], _long(f["size"]), _long(f["modificationTime"])) for f in listed]


def _long(number: Any) -> int:
    """Returns the lowest 64 bits of a number as a signed integer, as the reader in Java does."""
    return (int(number) + (1 << 63)) % (1 << 64) - (1 << 63)


def _files(listed: list[dict[str, Any]]) -> tuple[FileRef, ...]:
    """Returns only the files below the table's folder, because a listing of this folder contains no
    others."""
    return tuple(ref for ref in _all(listed) if not is_whole(ref.path))
