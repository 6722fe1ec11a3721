"""Reads the cases in sql/journal and creates tables from them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(__file__).parents[2] / "sql" / "journal"

#: The modification time, in seconds since 1970, of all files except those that a case marks as
#: "other" or "copied".
TIME = 1_700_000_000


@dataclass(frozen=True)
class Vector:
    """A case, as described in sql/journal/README.md."""

    name: str
    why: str
    records: dict[str, Any]
    files: list[Any]
    visible: list[str]
    accepted: list[str]

    def make(self, table: Path) -> None:
        """Creates the table's folder. The folder must not exist yet."""
        journal = table / "_zorder" / "_journal"
        journal.mkdir(parents=True)
        (table / "_zorder" / "_incarnation").write_text("life")
        for named in self.files:
            _write_file(table, named)
        size = _write_file(table.parent, "size.parquet").stat().st_size
        for name, record in self.records.items():
            (journal / name).write_text(_text(name, record, size))


def vectors() -> list[Vector]:
    """All cases."""
    files = sorted(FOLDER.glob("*.json"))
    return [Vector(**case) for file in files for case in json.loads(file.read_text())]


def _text(name: str, record: Any, size: int) -> str:
    if isinstance(record, str):
        return record
    kind = name.partition(".")[2]
    filled = {"formatVersion": 1, "record": kind, "incarnation": "life", **record}
    for key in {"retire", "add", "read"} & set(filled):
        filled[key] = [
            {"path": path, "size": size, "modificationTime": TIME * 1000} for path in filled[key]
        ]
    if "marked" in filled:
        filled["marked"] = [TIME * 1000] * len(filled["folders"])
    return json.dumps(filled)


def _write_file(table: Path, named: Any) -> Path:
    is_changed = isinstance(named, dict)
    other = is_changed and "other" in named
    path = table / (named["path"] if is_changed else named)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".parquet", ".staged", ".retired"):
        pq.write_table(pa.table({"id": [1] * (5 if other else 1)}), path)
    else:
        path.touch()
    os.utime(path, (TIME + 60 * is_changed, TIME + 60 * is_changed))
    return path
