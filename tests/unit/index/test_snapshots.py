"""An unusable index is treated as missing and never causes an error."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pyzorder.index.entries import FileEntry
from pyzorder.index.pointers import IndexedColumn, pointer_name, versions
from pyzorder.index.snapshot_writer import publish
from pyzorder.index.snapshots import latest
from pyzorder.index.stores import LocalStore
from pyzorder.index.table_folder import TableFolder

STORE = LocalStore()


@pytest.fixture
def folder(tmp_path: Path) -> TableFolder:
    """A table whose index has one snapshot."""
    made = TableFolder(str(tmp_path))
    columns = [IndexedColumn(("a",), "long")]
    publish(STORE, made, lambda _: columns, entries=[FileEntry("x", 1, 1, 1, (), "")])
    return made


def changed(**fields: Any) -> Callable[[Path], None]:
    """Changes fields of the pointer."""

    def change(index: Path) -> None:
        (pointer,) = index.glob("_v*.json")
        pointer.write_text(json.dumps({**json.loads(pointer.read_text()), **fields}))

    return change


def cut(name: str, keep: int) -> Callable[[Path], None]:
    """Truncates a file."""

    def change(index: Path) -> None:
        (file,) = index.glob(name)
        file.write_bytes(file.read_bytes()[:keep])

    return change


def recompressed(codec: str) -> Callable[[Path], None]:
    """Rewrites the snapshot with another codec, and updates its checksum."""

    def change(index: Path) -> None:
        (file,) = index.glob("_snapshot-*")
        pq.write_table(pq.ParquetFile(file).read(), file, compression=codec)
        data = file.read_bytes()
        changed(length=len(data), crc32=zlib.crc32(data))(index)

    return change


def flipped(index: Path) -> None:
    (file,) = index.glob("_snapshot-*")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


DAMAGE = {
    "pointer empty": cut("_v*.json", 0),
    "pointer cut": cut("_v*.json", 40),
    "snapshot empty": cut("_snapshot-*", 0),
    "snapshot cut": cut("_snapshot-*", 100),
    "a flipped bit": flipped,
    "a later format": changed(formatVersion=3),
    "no format": changed(formatVersion=0),
    "the incarnation of another table": changed(incarnation="another"),
    "a file elsewhere": changed(file="../../other/_zorder/_index/_snapshot-1-x"),
    "no such file": changed(file="_snapshot-1-none"),
    "other rows": changed(numFiles=2),
    "no columns": changed(columns=None),
    "a type that is not atomic": changed(columns=[{"path": ["a"], "type": {"type": "array"}}]),
    "a long pointer": changed(more="x" * (8 << 20)),
    "a pointer with many tokens": changed(more=[[]] * (1 << 20)),
    "another codec": recompressed("zstd"),
}


def test_undamaged(folder: TableFolder) -> None:
    found = latest(STORE, folder)
    assert found is not None and found.rows["path"].to_pylist() == ["x"]


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged(
    folder: TableFolder, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    damage(Path(folder.index))
    assert latest(STORE, folder) is None and latest(STORE, folder) is None
    assert len([r for r in caplog.records if folder.root in r.getMessage()]) == 1


def test_uncompressed(folder: TableFolder) -> None:
    recompressed("none")(Path(folder.index))
    found = latest(STORE, folder)
    assert found is not None and found.rows["path"].to_pylist() == ["x"]


def test_warning_of_a_name(folder: TableFolder, caplog: pytest.LogCaptureFixture) -> None:
    """A warning that quotes a name is a single line without control characters."""
    changed(file="x\nERROR forged\x1b[2J")(Path(folder.index))
    assert latest(STORE, folder) is None
    (message,) = [r.getMessage() for r in caplog.records if folder.root in r.getMessage()]
    assert "forged" in message and message.isprintable()


def test_the_next_snapshot_repairs_it(folder: TableFolder) -> None:
    flipped(Path(folder.index))
    publish(STORE, folder, lambda _: [], entries=[FileEntry("y", 1, 1, 1, (), "")])
    found = latest(STORE, folder)
    assert found is not None and found.rows["path"].to_pylist() == ["y"]


def test_no_index(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert latest(STORE, TableFolder(str(tmp_path))) is None and not caplog.records


@pytest.mark.parametrize("name", ["_v1.json", "_v00000000000000000007.json.tmp", "v7.json"])
def test_names_that_are_no_pointers(folder: TableFolder, name: str) -> None:
    (Path(folder.index) / name).touch()
    assert versions(STORE, folder) == [1]
    assert (Path(folder.index) / pointer_name(1)).exists()


def test_names_of_columns_differ() -> None:
    paths = [("a", "b"), ("a.b",), ("`a`.b",), ("a`.`b",)]
    assert len({IndexedColumn(path, "long").name for path in paths}) == len(paths)
