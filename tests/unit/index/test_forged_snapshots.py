"""Snapshots that pyzorder would never write do no damage, even if their pointers match them."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyzorder.index import snapshots
from pyzorder.index.entries import ColumnStatistics, FileEntry, table_of
from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.snapshot_writer import publish
from pyzorder.index.snapshots import latest
from pyzorder.index.stores import LocalStore
from pyzorder.index.table_folder import TableFolder

STORE = LocalStore()
A, D = IndexedColumn(("a",), "long"), IndexedColumn(("d",), "decimal(38,0)")
KNOWN = {
    A: ColumnStatistics((1, 2), null_count=0),
    D: ColumnStatistics((Decimal(1), Decimal(2)), null_count=0),
}


def entries(*paths: str) -> list[FileEntry]:
    return [FileEntry(path, 1, 1, 1, ("a",), "", KNOWN) for path in paths]


def forge(
    folder: TableFolder,
    columns: list[IndexedColumn],
    rows: pa.Table,
    replaced: tuple[bytes, bytes] = (b"", b""),
    **options: Any,
) -> None:
    """Publishes a snapshot with the given rows. `replaced` contains a byte sequence in the
    snapshot's file and its replacement."""
    publish(STORE, folder, lambda _: columns)
    (file,) = Path(folder.index).glob("_snapshot-*")
    sink = io.BytesIO()
    pq.write_table(rows, sink, store_schema=False, **options)
    data = sink.getvalue().replace(*replaced)
    file.write_bytes(data)
    (pointer,) = Path(folder.index).glob("_v*.json")
    fields = {"length": len(data), "crc32": zlib.crc32(data), "numFiles": rows.num_rows}
    pointer.write_text(json.dumps({**json.loads(pointer.read_text()), **fields}))


@pytest.fixture
def folder(tmp_path: Path) -> TableFolder:
    return TableFolder(str(tmp_path))


@pytest.fixture
def warnings(folder: TableFolder, caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    return lambda: [m for r in caplog.records if folder.root in (m := r.getMessage())]


def test_rows_that_take_too_much_memory(
    folder: TableFolder, warnings: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns that the pointer does not list are not decoded. A snapshot is ignored if its listed
    columns would take too much memory."""
    wide = [A, *(IndexedColumn((f"c{i}",), "long") for i in range(20))]
    rows = table_of(wide, entries(*map(str, range(1000))))
    monkeypatch.setattr(snapshots, "MOST_MEMORY", 300_000)
    forge(folder, [A], rows)
    found = latest(STORE, folder)
    assert found is not None and found.rows.column_names == table_of([A], []).column_names
    columns = [{"path": list(c.path), "type": c.data_type} for c in wide]
    (pointer,) = Path(folder.index).glob("_v*.json")
    pointer.write_text(json.dumps({**json.loads(pointer.read_text()), "columns": columns}))
    snapshots._loaded.clear()
    monkeypatch.setattr(pq, "read_table", pytest.fail)
    assert latest(STORE, folder) is None and latest(STORE, folder) is None
    (warning,) = warnings()
    assert "bytes of memory" in warning


def test_texts_that_take_too_much_memory(
    folder: TableFolder, warnings: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table_of([A], entries(*map(str, range(1000))))
    texts = pa.array(["x" * 1000] * 1000)
    rows = rows.set_column(5, rows.schema.field(5), texts)
    monkeypatch.setattr(snapshots, "MOST_MEMORY", 300_000)
    forge(folder, [A], rows)
    assert latest(STORE, folder) is None and len(warnings()) == 1


def test_pages_that_take_too_much_memory(
    folder: TableFolder, warnings: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small compressed pages with long strings are not decompressed."""
    rows = table_of([A], entries(*(f"{i}{'x' * 1000}" for i in range(1000))))
    monkeypatch.setattr(snapshots, "MOST_MEMORY", 500_000)
    forge(folder, [A], rows, use_dictionary=False)
    (file,) = Path(folder.index).glob("_snapshot-*")
    assert file.stat().st_size < 200_000
    monkeypatch.setattr(pq, "read_table", pytest.fail)
    assert latest(STORE, folder) is None
    (warning,) = warnings()
    assert "bytes of memory" in warning


def test_lists_in_many_row_groups(
    folder: TableFolder, warnings: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory limit for a snapshot applies to the whole file, not to each row group."""
    few = [FileEntry(str(i), 1, 1, 1, ("a",) * 50, "") for i in range(1000)]
    monkeypatch.setattr(snapshots, "MOST_MEMORY", 300_000)
    forge(folder, [A], table_of([A], few))
    assert latest(STORE, folder) is None and len(warnings()) == 1


def test_lists_longer_than_the_footer_says(
    folder: TableFolder, warnings: Callable[[], list[str]]
) -> None:
    """A snapshot is ignored if its pages contain more values than its footer states."""
    rows = table_of([A], [FileEntry("x", 1, 1, 1, ("a",) * 5000, "")])
    forge(folder, [A], rows, (bytes([0x16, 0x90, 0x4E]), bytes([0x16, 0x82, 0])))  # i64 5000 → 1
    assert latest(STORE, folder) is None and len(warnings()) == 1


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_encodings_that_repeat_texts(
    folder: TableFolder, warnings: Callable[[], list[str]], version: str
) -> None:
    rows = table_of([A], entries("x", "y"))
    options = {"use_dictionary": False, "column_encoding": {"path": "DELTA_BYTE_ARRAY"}}
    forge(folder, [A], rows, data_page_version=version, **options)
    assert latest(STORE, folder) is None and len(warnings()) == 1


def test_pages_of_version_2(folder: TableFolder) -> None:
    forge(folder, [A], table_of([A], entries("x", "y")), data_page_version="2.0")
    found = latest(STORE, folder)
    assert found is not None and found.rows["path"].to_pylist() == ["x", "y"]


def test_no_rows(folder: TableFolder) -> None:
    forge(folder, [A], table_of([A], []))
    found = latest(STORE, folder)
    assert found is not None and found.columns == (A,) and found.rows.num_rows == 0


def test_cached_rows_take_no_more_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MOST_MEMORY", 300_000)
    snapshots._loaded.clear()
    for i in range(5):
        (tmp_path / str(i)).mkdir()
        folder = TableFolder(str(tmp_path / str(i)))
        publish(STORE, folder, lambda _: [A], entries=entries(*map(str, range(1000))))
        assert latest(STORE, folder) is not None
    assert 0 < sum(rows.nbytes for _, rows in snapshots._loaded.values()) <= 300_000


@pytest.mark.parametrize("name", ["path", "size", "clustered_by", "read_settings"])
@pytest.mark.parametrize("values", [["x", "x"], [None, "y"], [b"\xff", b"y"]])
def test_properties_of_files_that_are_damaged(
    folder: TableFolder, warnings: Callable[[], list[str]], name: str, values: list[object]
) -> None:
    """A snapshot is ignored if a path occurs twice, or if a value is null, is not valid UTF-8 or
    has the wrong type."""
    rows = table_of([A], entries("x", "y"))
    array = pa.array(values)
    if array.type == pa.binary():
        array = array.view(pa.string())
    if name == "read_settings" and values == ["x", "x"]:
        array = pa.array([b"x", b"x"])
    forge(folder, [A], rows.set_column(rows.column_names.index(name), name, array))
    assert latest(STORE, folder) is None and len(warnings()) == 1


def test_names_of_sketches_that_are_damaged(
    folder: TableFolder, warnings: Callable[[], list[str]]
) -> None:
    rows = table_of([A], entries("x", "y"))
    names = pa.array([None, b"_sketch-1-\xff"]).view(pa.string())
    forge(
        folder, [A], rows.set_column(rows.column_names.index("sketch_file"), "sketch_file", names)
    )
    assert latest(STORE, folder) is None and len(warnings()) == 1


def test_a_column_twice(folder: TableFolder, warnings: Callable[[], list[str]]) -> None:
    rows = table_of([A], entries("x"))
    forge(folder, [A], rows.append_column("a_minValue", rows["a_minValue"]))
    assert latest(STORE, folder) is None and len(warnings()) == 1


@pytest.mark.parametrize(
    "bounds",
    [
        pa.array([b"\1" * 17], pa.binary(17)),
        pa.array([b"\1" * 17], pa.binary()),
        pa.array([Decimal(10) ** 60], pa.decimal256(76, 0)),
        pa.array(["1"]),
        None,
    ],
    ids=["fixed", "binary", "decimal256", "string", "missing"],
)
def test_bounds_of_another_type(
    folder: TableFolder, warnings: Callable[[], list[str]], bounds: pa.Array | None
) -> None:
    """If the bounds of one column are unusable, only that column is ignored. The next snapshot
    includes the column again."""
    rows = table_of([A, D], entries("x"))
    at = rows.column_names.index("d_maxValue")
    rows = rows.remove_column(at) if bounds is None else rows.set_column(at, "d_maxValue", bounds)
    forge(folder, [A, D], rows)
    found, again = latest(STORE, folder), latest(STORE, folder)
    assert found is not None and again is not None and found.columns == again.columns == (A,)
    assert found.rows["a_maxValue"].to_pylist() == [2]
    (warning,) = warnings()
    assert "cannot be read: d." in warning
    publish(STORE, folder, lambda old: old, entries=entries("y"))
    found = latest(STORE, folder)
    assert found is not None and found.columns == (A, D)
    assert found.rows["a_maxValue"].to_pylist() == [2, 2]
    assert found.rows["d_maxValue"].to_pylist() == [None, Decimal(2)]
    assert found.rows["d_num_nulls"].to_pylist() == [None, 0]


def test_decimals_of_too_many_bytes(folder: TableFolder, warnings: Callable[[], list[str]]) -> None:
    """A decimal with 38 digits takes 16 bytes. Longer values are not parsed, even if the footer
    claims a precision of 38."""
    rows = table_of([A, D], entries("x"))
    at = rows.column_names.index("d_maxValue")
    long = pa.array([Decimal(2)], pa.decimal256(40, 0))  # takes 17 bytes
    forge(folder, [A, D], rows.set_column(at, "d_maxValue", long), (_digits(40), _digits(38)))
    found = latest(STORE, folder)
    assert found is not None and found.columns == (A,)
    assert "d_maxValue" not in found.rows.column_names and len(warnings()) == 1


def _digits(precision: int) -> bytes:
    """Encodes a scale of 0 and the given precision in the format of a Parquet footer."""
    return bytes([0x15, 0, 0x15, 2 * precision])


def test_long_texts_in_warnings(folder: TableFolder, warnings: Callable[[], list[str]]) -> None:
    forge(folder, [A], table_of([A], entries("x")))
    (pointer,) = Path(folder.index).glob("_v*.json")
    pointer.write_text(json.dumps({**json.loads(pointer.read_text()), "file": "x" * 100_000}))
    assert latest(STORE, folder) is None
    (warning,) = warnings()
    assert len(warning) < 400 + 2 * len(folder.root)
