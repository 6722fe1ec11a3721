"""Forged records of a table's journal: what somebody who may write into the table's folder, and nowhere
else, can make of genuine ones.

The fields are those that genuine runs have written, found by walking through their JSON: a new field of
a record is attacked without being named here.
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.tables import data_files

#: How far a forged run has come: its outcome, whether it is done, and how many days ago.
STATES: dict[str, tuple[str | None, bool, int]] = {
    "undecided": (None, False, 0),
    "aborted": ("ABORT", False, 0),
    "committed": ("COMMIT", False, 0),
    "done": ("COMMIT", True, 0),
    "done long ago": ("COMMIT", True, 400),
}

#: Fields that tell which kind of record it is, or of which life of the table.
KEPT = {"formatVersion", "record", "incarnation", "operation", "outcome", "by"}


@dataclass(frozen=True)
class Target:
    """What an attack aims at: a folder, and the catalog's name of the table there."""

    folder: Path
    table: str

    def names(self, home: Path) -> Iterator[str]:
        """The folder as a record may name it, `home` being the forged table's folder."""
        yield f"file:{self.folder}"
        yield os.path.relpath(self.folder, home)
        yield f"file:{home}/../{self.folder.relative_to(home.parent)}"
        yield f"FILE:/{self.folder}"
        yield f"_link/{self.folder.relative_to(home.parent)}"
        yield self.folder.name

    def files(self, name: str) -> list[dict[str, Any]]:
        """Its data files, by that name of the folder."""
        return [
            {
                "path": f"{name}/{file.relative_to(self.folder)}",
                "size": file.stat().st_size,
                "modificationTime": file.stat().st_mtime_ns // 1_000_000,
            }
            for file in data_files(self.folder)
        ]


def records(journal: Path, run: int = 1) -> dict[str, dict[str, Any]]:
    """What a genuine run has written, by the kind of record."""
    found = {path.suffix[1:]: path for path in journal.glob(f"_{run}.*")}
    return {kind: json.loads(path.read_text()) for kind, path in found.items() if kind != "lease"}


def is_file(value: object) -> bool:
    return isinstance(value, dict) and {"path", "size", "modificationTime"} <= value.keys()


def fields(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where in a record texts and lists stand that can lead elsewhere."""
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
    """Points one field at the target."""
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
    """Every attack, but for its target: the genuine run, how far it has come, the field (None: all
    of them), and which of the target's names is used."""
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
    """Puts the forged run into the journal of the table in `home`, as its last one."""
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
