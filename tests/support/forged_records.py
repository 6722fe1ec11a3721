"""Creates forged records in a table's journal, as an attacker could do by altering copies of
genuine records. The attacker can write only to the table's folder.

The fields to forge are found by walking the JSON of genuine records, so the tests also cover fields
that are added to records later.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.tables import data_files

#: The states of a forged run: its outcome, whether it is done, and its age in days.
STATES: dict[str, tuple[str | None, bool, int]] = {
    "undecided": (None, False, 0),
    "aborted": ("ABORT", False, 0),
    "committed": ("COMMIT", False, 0),
    "done": ("COMMIT", True, 0),
    "done long ago": ("COMMIT", True, 400),
}

#: Fields that cannot refer to a folder, so they are not forged.
KEPT = {"formatVersion", "record", "incarnation", "operation", "outcome", "by"}


@dataclass(frozen=True)
class Target:
    """The target of an attack: a folder, and the name of the table in the catalog."""

    folder: Path
    table: str

    def names(self, home: Path) -> Iterator[str]:
        """The paths that a record could use to refer to the folder. `home` is the folder of the
        table with the forged records."""
        yield f"file:{self.folder}"
        yield os.path.relpath(self.folder, home)
        yield f"file:{home}/../{self.folder.relative_to(home.parent)}"
        yield f"FILE:/{self.folder}"
        yield f"_link/{self.folder.relative_to(home.parent)}"
        yield self.folder.name

    def files(self, name: str) -> list[dict[str, Any]]:
        """The target's data files, in the format of a record. The paths of the files begin with
        `name`."""
        return [
            {
                "path": f"{name}/{file.relative_to(self.folder)}",
                "size": file.stat().st_size,
                "modificationTime": file.stat().st_mtime_ns // 1_000_000,
            }
            for file in data_files(self.folder)
        ]


def records(journal: Path, run: int = 1) -> dict[str, dict[str, Any]]:
    """The records that a genuine run has written, by kind."""
    found = {path.suffix[1:]: path for path in journal.glob(f"_{run}.*")}
    return {kind: json.loads(path.read_text()) for kind, path in found.items() if kind != "lease"}


def lock(table: Path, run: int = 2) -> None:
    """Makes the table look as if a writer on another machine had locked it until 2100."""
    own = table / "_zorder"
    prepare: dict[str, Any] = {"formatVersion": 1, "record": "prepare", "operation": "OPTIMIZE"}
    prepare |= {"incarnation": (own / "_incarnation").read_text(), "began": 1, "lease": 1}
    prepare |= {"owner": "x", "host": "elsewhere", "pid": 1, "started": 1}
    (own / "_journal" / f"_{run}.prepare").write_text(json.dumps(prepare))
    lease = own / "_journal" / f"_{run}.lease"
    lease.write_text("x")
    os.utime(lease, (4_102_444_800, 4_102_444_800))


def mark_of(record: Path) -> str:
    """The mark of a run, computed from the file that contains the run's record. A run writes its
    mark to the folders that it fills."""
    table = record.parents[2].name
    return hashlib.sha256(f"{table}\n".encode() + record.read_bytes()).hexdigest()


def is_file(value: object) -> bool:
    return isinstance(value, dict) and {"path", "size", "modificationTime"} <= value.keys()


def fields(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of the strings and lists in a record that could refer to other folders."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if path or key not in KEPT:
                yield from fields(inner, (*path, key))
    elif isinstance(value, list):
        yield path
        if value and not is_file(value[0]):
            yield from fields(value[0], (*path, 0))
    elif isinstance(value, str):
        yield path


def forge(record: dict[str, Any], field: tuple[Any, ...], target: Target, name: str) -> None:
    """Makes a field refer to the target."""
    for step in field[:-1]:
        if isinstance(record, list) and not record:
            return
        record = record[step]
    if isinstance(record, list) and not record:
        return
    if isinstance(record[field[-1]], list):
        old = record[field[-1]]
        texts = field[-1] == "folders" or (old and isinstance(old[0], str))
        if texts:
            record[field[-1]] = [name]
        elif not old or is_file(old[0]):
            record[field[-1]] = target.files(name)
    else:
        record[field[-1]] = target.table if field[-1] == "table" else name


def cases(genuine: dict[str, dict[str, dict[str, Any]]]) -> Iterator[tuple[str, str, Any, int]]:
    """All attacks, without the folders that they target. An attack consists of the genuine run, the
    state of the forged run, the forged field (None for all fields), and the index of the name that
    is used for the target."""
    for run, of_run in genuine.items():
        every = [
            (kind, field)
            for kind, record in of_run.items()
            if kind != "prepare"
            for field in fields(record)
        ]
        for state in STATES:
            for one in [None, *every]:
                for number in range(6):
                    yield run, state, one, number


def write(
    home: Path,
    of_run: dict[str, dict[str, Any]],
    state: str,
    field: tuple[str, tuple[Any, ...]] | None,
    target: Target,
    name: int,
    number: int,
) -> None:
    """Adds a forged run with the given number to the journal of the table in `home`."""
    outcome, done, days = STATES[state]
    life = (home / "_zorder" / "_incarnation").read_text().strip()
    called = list(target.names(home))[name]
    for kind, genuine in copy.deepcopy(of_run).items():
        if (kind == "outcome" and outcome is None) or (kind == "done" and not done):
            continue
        for path in list(fields(genuine)) if kind != "prepare" else []:
            if field in (None, (kind, path)):
                forge(genuine, path, target, called)
        genuine["incarnation"] = life
        if kind == "prepare":
            genuine |= {"host": "elsewhere", "pid": 1, "started": 1, "lease": 1}
        if kind == "outcome":
            genuine["outcome"] = outcome
        file = home / "_zorder" / "_journal" / f"_{number}.{kind}"
        file.write_text(json.dumps(genuine))
        at = time.time() - days * 86400
        os.utime(file, (at, at))
