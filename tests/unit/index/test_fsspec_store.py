"""Tables can be read through the file systems of fsspec. The tests need fsspec."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

import pyzorder
from pyzorder.index.fsspec_store import FsspecStore, _stat
from tests.support.engine_tables import make

fsspec = pytest.importorskip("fsspec")

FILES = {f"p={k}/f{k}.parquet": pa.table({"a": [10 * k, 10 * k + 9]}) for k in range(3)}


def test_local(tmp_path: Path) -> None:
    make(tmp_path / "t", FILES)
    local = fsspec.filesystem("file")
    path = str(tmp_path / "t")
    assert pyzorder.files(path, "a = 15", filesystem=local) == [f"{path}/p=1/f1.parquet"]
    assert pyzorder.dataset(path, filesystem=local).to_table().num_rows == 6


@pytest.mark.parametrize("path", ["/t", "/bucket/t", "t"])
def test_a_store_without_modification_times(tmp_path: Path, path: str) -> None:
    """On a store without modification times, no files are skipped based on the index, because
    changes to files cannot be detected. Partitions are still skipped."""
    make(tmp_path / "t", FILES)
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path / "t"), path, recursive=True)
    try:
        found = pyzorder.files(path, "a = 15", filesystem=memory)
        assert [name.rpartition("/")[2] for name in found] == [
            "f0.parquet",
            "f1.parquet",
            "f2.parquet",
        ]
        assert pyzorder.dataset(path, filesystem=memory).to_table().num_rows == 6
        assert pyzorder.files(path, "p = 2", filesystem=memory) == found[2:]
    finally:
        memory.rm(path, recursive=True)


def test_a_missing_folder(tmp_path: Path) -> None:
    store = FsspecStore(fsspec.filesystem("file"))
    gone = str(tmp_path / "none")
    assert (store.names(gone), store.files(gone).paths, store.stats([gone])) == ([], [], {})
    with pytest.raises(pyzorder.ZOrderError, match="ZORDER_PATH_NOT_FOUND"):
        pyzorder.files(gone, filesystem=fsspec.filesystem("file"))


MOMENT = datetime(2024, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("info", "modified"),
    [
        ({"mtime": 1.5}, 1500),
        ({"LastModified": MOMENT}, 1_704_067_200_000),
        ({"last_modified": MOMENT}, 1_704_067_200_000),
        ({"updated": "2024-01-01T00:00:00Z"}, 1_704_067_200_000),
        ({"modificationTime": 1500}, 1500),
        ({"mtime": None}, -1),
        ({}, -1),
    ],
)
def test_modification_times(info: dict[str, object], modified: int) -> None:
    assert _stat({"size": 7, "type": "file", **info}) == (7, modified)
