"""A table is not listed if its index is recent enough."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyzorder
from pyzorder.engines.staleness import is_forged
from pyzorder.index import LocalStore, TableFolder
from pyzorder.index.entries import FileEntry
from pyzorder.index.snapshot_writer import publish
from tests.support.engine_tables import SETTINGS, make


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Creates an indexed table, and adds a file that is not in the index."""
    made = make(tmp_path, {n: pa.table({"a": [1]}) for n in ("a.parquet", "b.parquet")})
    (made / "c.parquet").write_bytes((made / "a.parquet").read_bytes())
    return made


def cover(table: Path, age: float, whole: bool = True, **fields: Any) -> None:
    """Changes the index so that it claims to cover the table, with a listing that is `age` seconds
    old."""
    (pointer,) = (table / "_zorder" / "_index").glob("_v*.json")
    coverage = {"listedAt": int((time.time() - age) * 1000), "whole": whole}
    changed = {**json.loads(pointer.read_text()), "coverage": coverage, **fields}
    pointer.write_text(json.dumps(changed))


def listed(table: Path, **options: Any) -> str:
    return "".join(Path(path).stem for path in pyzorder.files(table, **options))


def test_recent(table: Path) -> None:
    cover(table, age=60)
    assert listed(table) == "abc"
    assert listed(table, max_staleness="2min") == "ab"
    assert listed(table, max_staleness="30s") == "abc"
    assert pyzorder.dataset(table, max_staleness="1h").count_rows() == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda table: cover(table, age=60, whole=False),
        lambda table: cover(table, age=-60),  # the time of the listing is in the future
        lambda table: cover(table, age=60, coverage=None),
        lambda table: cover(table, age=60, coverage={"listedAt": "x"}),
        lambda table: (table / "_zorder" / "_incarnation").write_text("another"),
    ],
)
def test_not_covered(table: Path, change: Any) -> None:
    change(table)
    assert listed(table, max_staleness="1h") == "abc"


def test_an_unfinished_run(table: Path) -> None:
    cover(table, age=60)
    journal = table / "_zorder" / "_journal"
    journal.mkdir()
    (journal / "_1.prepare").touch()
    assert listed(table, max_staleness="1h") == "abc"


def test_pipes(table: Path) -> None:
    """If one of the indexed files has been replaced by a named pipe, the table is listed."""
    cover(table, age=60)
    (table / "a.parquet").unlink()
    os.mkfifo(table / "a.parquet")
    assert listed(table, max_staleness="1h") == "bc"


def test_an_index_that_names_files_elsewhere(tmp_path: Path) -> None:
    """Index entries are ignored if their files are outside the table's folder or hidden."""
    rows = {"a.parquet": pa.table({"a": [1]})}
    table = make(tmp_path / "t", rows)
    for place in ("secret.parquet", "t/_zorder/x.parquet", "t/.x.parquet"):
        (tmp_path / place).write_bytes((table / "a.parquet").read_bytes())
    names = [
        "../secret.parquet",
        f"file:{tmp_path}/secret.parquet",
        "_zorder/x.parquet",
        ".x.parquet",
    ]
    entries = [FileEntry(name, 1, 1, 1, (), SETTINGS) for name in names]
    publish(LocalStore(), TableFolder(str(table)), lambda _: [], entries=entries)
    (table / "_zorder" / "_index" / "_v00000000000000000001.json").unlink()
    cover(table, age=60)
    assert listed(table, max_staleness="1h") == "a"
    assert listed(table) == "a"


@pytest.mark.parametrize(
    "path", ["../x/a.parquet", "/etc/passwd", "file:/etc/passwd", "a/../../b", "_zorder/x", "a//b",
             "s3://b/a.parquet", ".hidden", "a\0b"]
)  # fmt: skip
def test_forged_names(path: str) -> None:
    """Paths that lead outside the table's folder or to hidden files are recognized as forged."""
    assert is_forged(path)
