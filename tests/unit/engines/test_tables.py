"""pyzorder finds the same files in a table as Spark, and rejects paths that cannot be read as a
table."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pytest

import pyzorder
from pyzorder import ZOrderError
from pyzorder.engines.indexing import index_files
from pyzorder.engines.tables import open_table
from tests.support.engine_tables import make, write
from tests.support.journal_vectors import Vector, vectors

ROWS = pa.table({"a": [1, 2]})


def names(table: Path, **options) -> list[str]:
    return [file.path for file in open_table(table, None, 0, **options).files]


def test_files_as_spark_sees_them(tmp_path: Path) -> None:
    write(tmp_path, dict.fromkeys(
        ["b.parquet", "a.parquet", "_a.parquet", ".a.parquet", "sub/c.parquet", "_x/d.parquet",
         "a.parquet._COPYING_", "_metadata", "_c=1"], ROWS))  # fmt: skip
    (tmp_path / "empty.parquet").touch()
    assert names(tmp_path) == ["_c=1", "a.parquet", "b.parquet"]


def test_partitions(tmp_path: Path) -> None:
    write(tmp_path, dict.fromkeys(["p=1/a.parquet", "p=2/x/b.parquet", "c.parquet"], ROWS))
    assert names(tmp_path) == ["p=1/a.parquet", "p=2/x/b.parquet"]


def test_a_partition_alone(tmp_path: Path) -> None:
    """A partition that is opened by its own path uses the index and the journal of its table."""
    make(tmp_path, {"p=1/a.parquet": ROWS, "p=1/q=2/b.parquet": ROWS, "p=2/q=1/c.parquet": ROWS})
    found = open_table(tmp_path / "p=1" / "q=2", None, 0)
    assert found.folder.root == str(tmp_path) and found.snapshot is not None
    assert [file.path for file in found.files] == ["p=1/q=2/b.parquet"]
    assert found.partitions == [] and found.folders == [""]
    (column,) = open_table(tmp_path / "p=2", None, 0).partitions
    assert column.values == {"q=1": 1}


#: What somebody could plant in the folder `_zorder/_journal`.
PLANTED: dict[str, Callable[[Path], None]] = {
    "a link to a file": lambda journal: (journal / "_1.retire").symlink_to("/etc/hostname"),
    "a pipe": lambda journal: os.mkfifo(journal / "_1.retire"),
    "a folder": lambda journal: (journal / "_1.retire").mkdir(),
    "bytes": lambda journal: (journal / os.fsdecode(b"_\xff.retire")).touch(),
}

#: What somebody could plant in its place.
INSTEAD: dict[str, Callable[[Path], None]] = {
    "a link to a folder": lambda journal: journal.symlink_to("/etc"),
    "a cycle of links": lambda journal: journal.symlink_to(journal),
    "a file": lambda journal: journal.touch(),
}


@pytest.mark.parametrize("planted", [*PLANTED, *INSTEAD])
@pytest.mark.parametrize("kind", ["none", "arrow", "fsspec"])
def test_local_file_systems(tmp_path: Path, planted: str, kind: str) -> None:
    """A local file system that is passed explicitly is read with the same checks."""
    make(tmp_path, {"a.parquet": ROWS, "b.parquet": pa.table({"a": [8, 9]})})
    journal = tmp_path / "_zorder" / "_journal"
    if planted in INSTEAD:
        INSTEAD[planted](journal)
    else:
        journal.mkdir()
        PLANTED[planted](journal)
    system = pyarrow.fs.LocalFileSystem() if kind == "arrow" else None
    if kind == "fsspec":
        system = pytest.importorskip("fsspec").filesystem("file")
    expected = [str(tmp_path / "b.parquet")]
    assert pyzorder.files(str(tmp_path), "a = 8", filesystem=system) == expected
    assert pyzorder.dataset(str(tmp_path), filesystem=system).to_table().num_rows == 4


def below(tmp_path: Path, kind: str) -> Any:
    """A file system whose paths are relative to a folder."""
    if kind == "arrow":
        return pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
    fsspec = pytest.importorskip("fsspec")
    return fsspec.filesystem("dir", path=str(tmp_path), fs=fsspec.filesystem("file"))


@pytest.mark.parametrize("kind", ["arrow", "fsspec"])
@pytest.mark.parametrize("place", [".", "_journal", "_index", "_journal/_1.retire", "_index/*"])
def test_files_and_folders_instead(tmp_path: Path, kind: str, place: str) -> None:
    """A file in place of a folder, or folders in place of files, do not fail a read."""
    make(tmp_path / "t", {"a.parquet": ROWS, "b.parquet": pa.table({"a": [8, 9]})})
    own = tmp_path / "t" / "_zorder"
    if place == "_index/*":
        for path in list((own / "_index").iterdir()):
            path.unlink()
            path.mkdir()
    elif place == "_journal/_1.retire":
        (own / place).mkdir(parents=True)
    else:
        shutil.rmtree(own / place, ignore_errors=True)
        (own / place).touch()
    system = below(tmp_path, kind)
    assert pyzorder.dataset("t", filesystem=system).to_table().num_rows == 4
    found = pyzorder.files("t", "a = 8", filesystem=system)
    assert "t/b.parquet" in [path.removeprefix("/") for path in found]


@pytest.mark.parametrize("vector", vectors(), ids=lambda v: v.name)
def test_the_journal(tmp_path: Path, vector: Vector) -> None:
    vector.make(tmp_path / "t")
    visible = [name for name in vector.visible if not any("=" in n for n in vector.visible)]
    if visible == vector.visible:
        assert names(tmp_path / "t") == sorted(n for n in visible if "/" not in n)


def test_relative_paths_and_uris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "t", {"a.parquet": ROWS})
    monkeypatch.chdir(tmp_path)
    expected = [str(tmp_path / "t" / "a.parquet")]
    for path in ("t", "./t/", f"file:{tmp_path}/t", f"file://{tmp_path}/t/", tmp_path / "t"):
        assert pyzorder.files(path) == expected, path


def test_file_systems(tmp_path: Path) -> None:
    make(tmp_path / "t", {"a.parquet": ROWS, "b.parquet": pa.table({"a": [8, 9]})})
    system = below(tmp_path, "arrow")
    assert pyzorder.files("t", "a = 8", filesystem=system) == ["t/b.parquet"]
    assert pyzorder.dataset("t", filesystem=system).to_table().num_rows == 4


@pytest.mark.parametrize(
    ("made", "condition"),
    [
        ("_delta_log/0.json", "ZORDER_ENGINE_TABLE"),
        (".hoodie/x", "ZORDER_ENGINE_TABLE"),
        ("_spark_metadata/0", "ZORDER_STREAMING_SINK"),
    ],
)
def test_other_formats(tmp_path: Path, made: str, condition: str) -> None:
    write(tmp_path, {"a.parquet": ROWS})
    (tmp_path / made).parent.mkdir()
    (tmp_path / made).touch()
    with pytest.raises(ZOrderError) as raised:
        pyzorder.files(tmp_path)
    assert raised.value.condition == condition


@pytest.mark.parametrize("name", ["a.csv", "part-0.JSON", "b.csv.gz"])
def test_a_folder_of_other_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("a\n1\n")
    with pytest.raises(ZOrderError, match=r"ZORDER_NO_FILES.*no Parquet or ORC data files"):
        pyzorder.files(tmp_path, "a = 1")
    write(tmp_path, {"b.parquet": ROWS})
    assert len(pyzorder.files(tmp_path)) == 2


def test_a_parquet_file_named_after_its_source(tmp_path: Path) -> None:
    write(tmp_path, {"a.csv.parquet": ROWS})
    assert len(pyzorder.files(tmp_path)) == 1


def test_paths_that_are_no_folders(tmp_path: Path) -> None:
    write(tmp_path, {"a.parquet": ROWS})
    for path, condition in (
        (tmp_path / "none", "ZORDER_PATH_NOT_FOUND"),
        (tmp_path / "a.parquet", "ZORDER_ENGINE_TABLE"),
        ("nosuchstore://bucket/t", "ZORDER_ENGINE_TABLE"),
    ):
        with pytest.raises(ZOrderError) as raised:
            pyzorder.files(path)
        assert raised.value.condition == condition


def test_the_same_path_on_two_file_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is never read with the rows of another table's index, even if the other index names
    the same files with the same checksums."""
    monkeypatch.setattr(zlib, "crc32", lambda *_: 7)
    systems = {}
    for name, first in (("own", 1001), ("theirs", 2001)):
        folder = tmp_path / name / "t"
        write(folder, {"a.parquet": pa.table({"a": [first, first + 1, first + 2]})})
        os.utime(folder / "a.parquet", (1_700_000_000, 1_700_000_000))
        index_files(folder)
        systems[name] = pyarrow.fs.SubTreeFileSystem(
            str(folder.parent), pyarrow.fs.LocalFileSystem()
        )
    own, theirs = (tmp_path / name / "t" / "_zorder" for name in ("own", "theirs"))
    pointer, forged = (max((z / "_index").glob("_v*.json")) for z in (own, theirs))
    (data,), (other,) = (list((z / "_index").glob("_snapshot-2-*")) for z in (own, theirs))
    assert data.stat().st_size == other.stat().st_size
    files = [zorder.parent / "a.parquet" for zorder in (own, theirs)]
    assert files[0].stat().st_size == files[1].stat().st_size
    forged.write_bytes(pointer.read_bytes())
    other.rename(other.with_name(data.name))
    (theirs / "_incarnation").write_bytes((own / "_incarnation").read_bytes())
    assert len(pyzorder.files("t", "a = 2001", filesystem=systems["theirs"])) == 1
    assert len(pyzorder.files("t", "a = 1002", filesystem=systems["own"])) == 1
