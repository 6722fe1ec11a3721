"""A published snapshot can be read back, concurrent writers keep each other's entries, and old
snapshots are deleted."""

from __future__ import annotations

import io
import json
import shutil
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyzorder.errors import ZOrderError
from pyzorder.index.coverage import Coverage
from pyzorder.index.entries import ColumnStatistics, FileEntry
from pyzorder.index.pointers import IndexedColumn, pointer_name, versions
from pyzorder.index.snapshot_writer import KEPT_SNAPSHOTS, publish
from pyzorder.index.snapshots import Snapshot, _loaded, latest
from pyzorder.index.stores import LocalStore
from pyzorder.index.table_folder import TableFolder

STORE = LocalStore()
A, B = IndexedColumn(("a",), "long"), IndexedColumn(("b",), "double")


@pytest.fixture
def folder(tmp_path: Path) -> TableFolder:
    return TableFolder(str(tmp_path))


def entry(name: str, low: int = 0, high: int = 9) -> FileEntry:
    known = ColumnStatistics((low, high), exact=True, null_count=0, nan_seen=False)
    return FileEntry(name, 10, 1, 5, ("a",), "", {A: known})


def add(folder: TableFolder, *names: str, columns: Sequence[IndexedColumn] = (A, B)) -> None:
    publish(STORE, folder, lambda _: columns, entries=[entry(name) for name in names])


def read(folder: TableFolder) -> Snapshot:
    found = latest(STORE, folder)
    assert found is not None
    return found


def test_what_is_published_is_read(folder: TableFolder) -> None:
    add(folder, "y", "x")
    found = read(folder)
    assert found.columns == (A, B) and found.pointer.num_files == 2
    assert found.rows["path"].to_pylist() == ["x", "y"]
    assert found.rows["a_maxValue"].to_pylist() == [9, 9]
    assert found.rows["b_minValue"].to_pylist() == [None, None]
    assert found.rows["b_nan_seen"].to_pylist() == [True, True]


def test_the_next_keeps_the_chosen_rows(folder: TableFolder) -> None:
    add(folder, "x", "y")
    publish(
        STORE, folder, lambda old: old,
        keep=lambda rows: [path != "x" for path in rows["path"].to_pylist()], entries=[entry("z")],
    )  # fmt: skip
    assert read(folder).rows["path"].to_pylist() == ["y", "z"]


@pytest.mark.parametrize("column", [IndexedColumn(("b",), "double"), IndexedColumn(("a",), "date")])
def test_nothing_stays_of_a_column_that_goes_or_changes(
    folder: TableFolder, column: IndexedColumn
) -> None:
    add(folder, "x", columns=[A])
    add(folder, columns=[column])
    rows = read(folder).rows
    assert rows[f"{column.name}_minValue"].to_pylist() == [None]
    assert ("a_minValue" in rows.column_names) == (column.name == "a")


def test_no_entry_of_writers_at_once_is_lost(folder: TableFolder) -> None:
    names = [f"file {i:02}" for i in range(12)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda name: add(folder, name), names))
    assert read(folder).rows["path"].to_pylist() == names
    assert len(list(Path(folder.index).glob("_snapshot-*"))) <= KEPT_SNAPSHOTS + 6


def test_old_snapshots_are_deleted(folder: TableFolder) -> None:
    for i in range(KEPT_SNAPSHOTS + 3):
        add(folder, f"{i:02}")
    assert versions(STORE, folder) == list(range(4, KEPT_SNAPSHOTS + 4))
    assert len(list(Path(folder.index).glob("_snapshot-*"))) == KEPT_SNAPSHOTS


def test_snapshots_of_denied_columns_are_deleted(folder: TableFolder) -> None:
    add(folder, "x")
    publish(STORE, folder, lambda old: old, is_denied=lambda column: column.name == "a")
    assert read(folder).columns == (B,)
    assert versions(STORE, folder) == [2]


def test_deleted_snapshots_leave_no_gap(folder: TableFolder) -> None:
    """Readers conclude that a version is the newest if the next one does not exist."""
    add(folder, "x", columns=[B])
    add(folder, "y", columns=[A, B])
    publish(STORE, folder, lambda old: [B], is_denied=lambda column: column.name == "a")
    assert versions(STORE, folder) == [3]


class Slow(LocalStore):
    """A store that runs `meanwhile` before it creates the first pointer."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = [meanwhile]

    def create(self, path: str, data: bytes) -> bool:
        if path.endswith(".json") and self._meanwhile:
            self._meanwhile.pop()()
        return super().create(path, data)


@pytest.mark.parametrize("first", [False, True])
def test_a_number_that_is_free_again(folder: TableFolder, first: bool) -> None:
    """If a writer is so slow that its number has been used and deleted, it publishes again."""
    if not first:
        add(folder, "old")

    def others() -> None:
        for number in range(KEPT_SNAPSHOTS + 2):
            add(folder, f"{number:02}")

    publish(Slow(others), folder, lambda old: old or (A, B), entries=[entry("slow")])
    found = read(folder)
    assert found.pointer.version == KEPT_SNAPSHOTS + (3 if first else 4)
    assert len(found.rows["path"].to_pylist()) == KEPT_SNAPSHOTS + (3 if first else 4)
    known = versions(STORE, folder)
    assert len(known) == known[-1] - known[0] + 1


def test_an_index_that_was_created_again(folder: TableFolder) -> None:
    """A slow writer does not publish the rows of an index that was dropped in the meantime."""
    for name in ("a", "b", "c"):
        add(folder, name)

    def others() -> None:
        shutil.rmtree(folder.index)
        _loaded.clear()
        add(folder, "new")

    publish(Slow(others), folder, lambda old: old, entries=[entry("slow")])
    assert read(folder).rows["path"].to_pylist() == ["new", "slow"]
    assert versions(STORE, folder) == [1, 2]


def test_a_kept_row_is_not_replaced(folder: TableFolder) -> None:
    add(folder, "x", "y")
    publish(STORE, folder, lambda old: old, entries=[FileEntry("x", 7, 7, 7, (), ""), entry("z")])
    assert read(folder).rows["size"].to_pylist() == [10, 10, 10]
    assert read(folder).rows["path"].to_pylist() == ["x", "y", "z"]


def test_statistics_of_another_type_are_dropped(folder: TableFolder) -> None:
    changed = IndexedColumn(("a",), "string")
    add(folder, "x", columns=[changed])
    assert read(folder).rows["a_minValue"].to_pylist() == [None]


def test_coverage(folder: TableFolder) -> None:
    """Coverage is published. If a writer does not set `coverableSince`, the new snapshot keeps the
    previous value."""
    found = Coverage(5, is_whole=True)
    publish(STORE, folder, lambda _: [A], coverage=lambda old, rows: found)
    assert read(folder).pointer.coverage == found
    pointer = Path(folder.index) / read(folder).pointer.name
    pointer.write_text(json.dumps({**json.loads(pointer.read_text()), "coverableSince": 1}))
    add(folder, "x")
    assert (read(folder).pointer.coverage, read(folder).pointer.coverable_since) == (None, 1)


def test_nothing_is_covered_after_a_damaged_index(folder: TableFolder) -> None:
    add(folder, "x")
    (Path(folder.index) / read(folder).pointer.file).write_bytes(b"")
    _loaded.clear()
    publish(STORE, folder, lambda _: [A], coverage=lambda old, rows: Coverage(5, True))
    assert (read(folder).pointer.coverage, read(folder).pointer.coverable_since) == (None, 2)


def test_a_snapshot_with_gaps_is_replaced(folder: TableFolder) -> None:
    """pyzorder writes the flags of all files. A snapshot without them was forged."""
    add(folder, "x")
    old = read(folder)
    place = old.rows.schema.get_field_index("a_exact")
    sink = io.BytesIO()
    pq.write_table(old.rows.set_column(place, "a_exact", pa.nulls(1, pa.bool_())), sink)
    data = sink.getvalue()
    Path(f"{folder.index}/{old.pointer.file}").write_bytes(data)
    pointer = Path(f"{folder.index}/{pointer_name(old.pointer.version)}")
    written = json.loads(pointer.read_text()) | {"length": len(data), "crc32": zlib.crc32(data)}
    pointer.write_text(json.dumps(written))
    _loaded.clear()
    assert read(folder).rows["a_exact"].null_count == 1
    add(folder, "y")
    assert read(folder).rows["path"].to_pylist() == ["y"]


def test_a_newer_format_is_not_replaced(folder: TableFolder) -> None:
    add(folder, "x")
    pointer = Path(folder.index) / read(folder).pointer.name
    pointer.write_text(json.dumps({**json.loads(pointer.read_text()), "formatVersion": 99}))
    with pytest.raises(ZOrderError, match="ZORDER_NEWER_INDEX"):
        add(folder, "y")
    assert versions(STORE, folder) == [1]
