"""The journal of the runs that rewrite a table: sql/FORMAT.md, section "Journal"."""

from __future__ import annotations

import json
import re
from typing import Any

from pyzorder.fallback import failures
from pyzorder.fallback.stores import Store, TableFolder, leaves, store_of

#: What each kind of record says, but for what all do.
FIELDS: dict[str, tuple[str, ...]] = {
    "prepare": ("operation", "owner", "host", "pid", "started", "began", "lease"),
    "retire": ("retire", "add", "folders"), "switch": ("to",), "partitions": ("to",),
    "outcome": ("outcome", "by"), "done": (),
}  # fmt: skip

_RECORD = re.compile(rf"_(\d+)\.({'|'.join(FIELDS)})")


class JournalState:
    """The last run of a journal, as one listing showed it."""

    def __init__(self, store: Store, folder: TableFolder) -> None:
        self._store, self.folder = store, folder
        found = [m for m in map(_RECORD.fullmatch, store.names(folder.journal)) if m]
        #: The last run's number; 0: there is no journal.
        self.run = max((int(m[1]) for m in found), default=0)
        self._kinds = {m[2] for m in found if int(m[1]) == self.run}

    @property
    def unfinished(self) -> bool:
        """Whether the run still has something to do."""
        return self.run > 0 and "done" not in self._kinds

    @property
    def switches(self) -> bool:
        """Whether the run has switched the table's location to another folder, or may yet, or
        those of partitions, which is done once it is finished."""
        if "partitions" in self._kinds:
            return self.unfinished
        outcome = self.record("outcome")
        is_undone = not self.unfinished and outcome is not None and outcome["outcome"] == "ABORT"
        return "switch" in self._kinds and not is_undone

    def record(self, kind: str) -> dict[str, Any] | None:
        """A record of the run; None: there is none, or it is torn."""
        if kind not in self._kinds:
            return None
        try:
            return whole(self._store.read(path_of(self.folder, self.run, kind)), kind)
        except FileNotFoundError:
            return None


def path_of(folder: TableFolder, run: int, kind: str) -> str:
    """The path of a record of a run."""
    return f"{folder.journal}/_{run}.{kind}"


def whole(text: bytes, kind: str) -> dict[str, Any] | None:
    """A record; None: it is torn, of another kind, or names files outside of the table."""
    try:
        record = json.loads(text)
        named = [f["path"] for name in ("retire", "add") for f in record.get(name, [])]
        named += [folder for folder in record.get("folders", []) if folder]
        is_whole = record["record"] == kind and isinstance(record["incarnation"], str)
        is_whole = is_whole and all(name in record for name in FIELDS[kind])
        is_told = kind != "outcome" or record["outcome"] in ("COMMIT", "ABORT")
        return record if is_whole and is_told and not any(map(leaves, named)) else None
    except (ValueError, KeyError, TypeError):
        return None


def check_settled(folder: TableFolder) -> None:
    """An error while a run's files change places: a listing then shows neither the old nor the new.

    Raises:
        ZOrderError: ZORDER_FALLBACK_UNFINISHED.
    """
    state = JournalState(store_of(folder.root), folder)
    if state.unfinished and state.record("retire") is not None:
        raise failures.unfinished(folder.root, state.run)
