"""The journal of the runs that rewrite a table: sql/FORMAT.md, section "Journal".

Only the jar writes it. What cannot be parsed, or names files outside of the table's folder, is no
record.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from pyzorder.index.stores import Store, is_whole
from pyzorder.index.table_folder import TableFolder, is_id, leaves

#: The fields that each kind of record must have, besides those that all have.
FIELDS: dict[str, tuple[str, ...]] = {
    "prepare": ("operation", "owner", "host", "pid", "started", "began", "lease"),
    "retire": ("retire", "add", "folders"),
    "switch": ("database", "table", "to", "read"),
    "partitions": ("database", "table", "to", "partitions", "read"),
    "outcome": ("outcome", "by"),
    "done": (),
}

#: The length up to which a text is taken as it is, and the least bytes of a token in others.
_FEW, _TOKEN = 1 << 20, 5

#: Of at most 18 digits, and without leading zeros: any other name is none of a run's.
_RECORD = re.compile(rf"_([1-9][0-9]{{0,17}})\.({'|'.join(FIELDS)})")


class FileRef(NamedTuple):
    """A data file as a record names it: its path in the table's folder, bytes, milliseconds."""

    path: str
    size: int
    modified: int

    @property
    def folder(self) -> str:
        """The folder that holds it; empty: the table's own."""
        return self.path.rpartition("/")[0]


class Overlay(NamedTuple):
    """
    What an unfinished run adds to a listing and takes from it.

    shown, hidden  the files that are the table, wherever they lie, and those that are not
    committed      whether these are the run's new files, or else the old ones
    incarnation    of the run's markers
    """

    shown: tuple[FileRef, ...]
    hidden: tuple[FileRef, ...]
    committed: bool
    incarnation: str


class JournalState:
    """The last run of a journal, as one listing showed it."""

    def __init__(self, store: Store, folder: TableFolder) -> None:
        self._store, self.folder = store, folder
        found = [m for m in map(_RECORD.fullmatch, store.names(folder.journal)) if m]
        #: The last run's number; 0: there is no journal.
        self.run = max((int(m[1]) for m in found), default=0)
        self.kinds = frozenset(m[2] for m in found if int(m[1]) == self.run)

    @property
    def unfinished(self) -> bool:
        """Whether the run still has something to do. The name of `done` is all that it says."""
        return self.run > 0 and "done" not in self.kinds

    @property
    def token(self) -> tuple[int, frozenset[str]]:
        """Changes whenever a record is added."""
        return self.run, self.kinds

    def record(self, kind: str) -> dict[str, Any] | None:
        """A record of the run; None: there is none, or what there is is no record."""
        if kind not in self.kinds:
            return None
        try:
            text = self._store.read(f"{self.folder.journal}/_{self.run}.{kind}")
        except FileNotFoundError:
            return None
        return parsed(text, kind)

    @property
    def overlay(self) -> Overlay | None:
        """What readers do to a listing; None: nothing, it is right as it is."""
        if not self.unfinished or "partitions" in self.kinds:
            return None
        record = self.record("retire")
        if record is None:
            return None
        old, new = _files(record["retire"]), _files(record["add"])
        outcome = self.record("outcome")
        committed = outcome is not None and outcome["outcome"] == "COMMIT"
        shown, hidden = (new, old) if committed else (old, new)
        return Overlay(shown, hidden, committed, record["incarnation"])


def parsed(text: bytes, kind: str) -> dict[str, Any] | None:
    """A record; None: it is torn, of another kind, or names files outside of the table."""
    try:
        if len(text) > _FEW and sum(map(text.count, (b"[", b"{", b","))) > len(text) // _TOKEN:
            return None  # `[],[],[]` takes much more memory than a record of that length
        record = json.loads(text)
        is_whole_record = record["record"] == kind and is_id(record["incarnation"])
        is_whole_record &= all(name in record for name in FIELDS[kind])
        is_known = kind != "outcome" or record["outcome"] in ("COMMIT", "ABORT")
        is_inside = not any(map(leaves, _named(record)))
        return record if is_whole_record and is_known and is_inside else None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _named(record: dict[str, Any]) -> list[str]:
    lists = (record.get(name, []) for name in ("retire", "add", "read"))
    files = [ref.path for listed in lists for ref in _all(listed)]
    return files + [folder for folder in record.get("folders", []) if folder]


def _all(listed: list[dict[str, Any]]) -> list[FileRef]:
    return [FileRef(f["path"], int(f["size"]), int(f["modificationTime"])) for f in listed]


def _files(listed: list[dict[str, Any]]) -> tuple[FileRef, ...]:
    """The files in the table's folder. A listing of that never shows those with whole paths."""
    return tuple(ref for ref in _all(listed) if not is_whole(ref.path))
