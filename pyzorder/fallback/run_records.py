"""The records of one run, written: sql/FORMAT.md, section "Journal".

What io.pyzorder.publish does with Records and RunRecords.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import Any

from pyzorder.fallback import failures, index_store, markers
from pyzorder.fallback.journal import FIELDS, path_of, whole
from pyzorder.fallback.lease import current
from pyzorder.fallback.own_files import create_if_absent, remove, remove_empty, remove_unused
from pyzorder.fallback.stores import LocalStore, Stat, TableFolder


@dataclass(frozen=True)
class FileRef:
    """One data file as it was seen; `path` relative to the table's folder."""

    path: str
    size: int
    modified: int

    @property
    def folder(self) -> str:
        """The folder that holds it, named as it is; empty: the table's own."""
        return self.path.rpartition("/")[0]

    @property
    def stat(self) -> Stat:
        """What tells it from others of its name."""
        return Stat(self.size, self.modified)


@dataclass(frozen=True)
class Retirement:
    """What a run replaces by what, and the folders that carry its marker."""

    incarnation: str
    retire: tuple[FileRef, ...] = ()
    add: tuple[FileRef, ...] = ()
    folders: tuple[str, ...] = ()


def retirement_of(record: dict[str, Any] | None) -> Retirement | None:
    """What a RETIRE says; None: there is none."""
    if record is None:
        return None
    retire, add = (
        tuple(FileRef(f["path"], int(f["size"]), int(f["modificationTime"])) for f in record[name])
        for name in ("retire", "add")
    )
    return Retirement(record["incarnation"], retire, add, tuple(record["folders"]))


class RunRecords:
    """Writes the records of one run."""

    def __init__(self, folder: TableFolder, run: int) -> None:
        self._folder, self._run = folder, run

    def prepare(self, incarnation: str, operation: str, owner: str, lease: int) -> bool:
        """Takes the lock; False: another writer was first. `lease` in milliseconds."""
        began = int(time.time() * 1000)
        record = {"operation": operation, "owner": owner, **current()._asdict(), "began": began}
        return self._create("prepare", incarnation, {**record, "lease": lease})

    def retire(self, record: Retirement) -> None:
        """Says what the run replaces. Raises ZOrderError: it was said before."""
        listed: dict[str, Any] = {
            name: [{"path": f.path, "size": f.size, "modificationTime": f.modified} for f in refs]
            for name, refs in (("retire", record.retire), ("add", record.add))
        }
        listed["folders"] = list(record.folders)
        if not self._create("retire", record.incarnation, listed):
            raise failures.conflict(f"record {path_of(self._folder, self._run, 'retire')} appeared")

    def commit(self, incarnation: str, by: str) -> bool:
        """Whether the run is committed now; False: someone declared its writer dead."""
        if self._create("outcome", incarnation, {"outcome": "COMMIT", "by": by}):
            return True
        found = self._read("outcome")
        return found is not None and (found["outcome"], found["by"]) == ("COMMIT", by)

    def abort(self, incarnation: str, by: str) -> bool:
        """Whether the run is aborted now; False: it was committed before."""
        if self._create("outcome", incarnation, {"outcome": "ABORT", "by": by}):
            return True
        found = self._read("outcome")
        return found is not None and found["outcome"] == "ABORT"

    @property
    def is_decided(self) -> bool:
        """Whether the run was committed or aborted, by its writer or one who declared that dead."""
        return os.path.exists(path_of(self._folder, self._run, "outcome"))

    @property
    def are_going(self) -> bool:
        """Whether the folder is just being deleted: nothing else takes PREPARE away. Not where a
        RETIRE without DONE tells the next writer what to bring to its end."""
        kinds = ("prepare", "retire", "done")
        prepare, retire, done = (
            os.path.exists(path_of(self._folder, self._run, kind)) for kind in kinds
        )
        return not prepare and (done or not retire)

    @property
    def are_gone(self) -> bool:
        """Whether DONE is all that is left: the folder was deleted as it came. Asked for long after
        the run, when the folder may just be renamed and renamed back: DONE has to be there first
        and last."""
        done, prepare, retire, still = (
            os.path.exists(path_of(self._folder, self._run, kind))
            for kind in ("done", "prepare", "retire", "done")
        )
        return done and not prepare and not retire and still

    def left(self, incarnation: str) -> Retirement:
        """What the run replaces, as it says now; if it does not, the folders it has marked."""
        folders = tuple(markers.left(self._folder, self._run, incarnation))
        return retirement_of(self._read("retire")) or Retirement(incarnation, folders=folders)

    def done(self, incarnation: str) -> None:
        """Nothing is left to do."""
        self._create("done", incarnation, {})

    def clear(self, incarnation: str) -> None:
        """Takes away the run's records where its folder is no table any more, the index of that
        life of the table, and folders of ours that are empty then: a disk does not delete a folder
        into which a file comes meanwhile.

        A run of the same number in a new life of the table keeps its own.
        """
        for kind in FIELDS:
            record = self._read(kind)
            if record is not None and record["incarnation"] == incarnation:
                remove(path_of(self._folder, self._run, kind))
        index_store.remove_of(self._folder, incarnation)
        for name in ("_staging", "_retired"):
            remove_empty(f"{self._folder.zorder}/{name}/_{self._run}")
            remove_empty(f"{self._folder.zorder}/{name}")
        for folder in (self._folder.journal, self._folder.index):
            remove_empty(folder)
        # Who deletes the table may have given up at what was here, and yet take the rest away; who
        # has just made `_zorder` for a new table counts on it.
        remove_unused(self._folder.zorder)

    def _create(self, kind: str, incarnation: str, more: dict[str, Any]) -> bool:
        """False: there is such a record. A torn one is none: it is taken away, its place free."""
        path = path_of(self._folder, self._run, kind)
        record = {"formatVersion": 1, "record": kind, "incarnation": incarnation, **more}
        data = json.dumps(record).encode()
        if create_if_absent(path, data):
            return True
        if kind == "prepare" or self._read(kind) is not None:
            return False
        remove(path)
        return create_if_absent(path, data)

    def _read(self, kind: str) -> dict[str, Any] | None:
        try:
            return whole(LocalStore().read(path_of(self._folder, self._run, kind)), kind)
        except FileNotFoundError:
            return None
