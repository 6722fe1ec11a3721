"""New files are indexed from their footers. Entries that other writers publish in the meantime are
kept."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pytest

import pyzorder
from pyzorder.engines import indexing
from pyzorder.engines.indexing import Outcome, index_files
from pyzorder.errors import ZOrderError
from pyzorder.index import LocalStore, Snapshot, TableFolder, latest
from pyzorder.index.entries import FileEntry
from pyzorder.index.pointers import IndexedColumn, versions
from pyzorder.index.snapshot_writer import publish
from tests.support import disks
from tests.support.engine_tables import make, spoil, write

STORE = LocalStore()
FILES = {f"f{k}.parquet": pa.table({"a": [10 * k, 10 * k + 9], "s": ["x", "y"]}) for k in range(3)}
MORE = {"g.parquet": pa.table({"a": [30, 39], "s": ["x", "y"]})}
A, S = IndexedColumn(("a",), "long"), IndexedColumn(("s",), "string")


def snapshot(table: Path) -> Snapshot:
    found = latest(STORE, TableFolder(str(table)))
    assert found is not None
    return found


def paths(table: Path) -> list[str]:
    """The files that have a row in the index."""
    return list(snapshot(table).rows["path"].to_pylist())


def test_a_new_index(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    assert index_files(tmp_path) == Outcome([A, S], 3, sorted(FILES), version=2)
    spoil(tmp_path, ["f1.parquet"])
    assert pyzorder.files(tmp_path, "a = 15") == [f"{tmp_path}/f1.parquet"]
    found = snapshot(tmp_path)
    assert found.pointer.coverage is not None and found.pointer.coverage.is_whole
    assert pyzorder.files(tmp_path, "a = 15", max_staleness="1h") == [f"{tmp_path}/f1.parquet"]


def test_new_changed_and_deleted_files(tmp_path: Path) -> None:
    make(tmp_path, FILES)
    before = snapshot(tmp_path).rows.filter(pa.array([True, False, False]))
    write(tmp_path, {**MORE, "f1.parquet": pa.table({"a": [99] * 50, "s": ["z"] * 50})})
    (tmp_path / "f2.parquet").unlink()
    done = index_files(tmp_path)
    assert done == Outcome([A, S], 3, ["f1.parquet", "g.parquet"], version=2)
    assert paths(tmp_path) == ["f0.parquet", "f1.parquet", "g.parquet"]
    assert snapshot(tmp_path).rows.slice(0, 1).equals(before)  # including its clustering columns
    assert pyzorder.files(tmp_path, "a = 99") == [f"{tmp_path}/f1.parquet"]
    assert index_files(tmp_path) == Outcome([A, S], 3, version=3)


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    assert index_files(tmp_path, dry_run=True) == Outcome([A, S], 3, sorted(FILES))
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(FILES)


def test_columns_of_a_new_index(tmp_path: Path) -> None:
    rows = pa.table({"a": [1], "B": [{"c": 2, "x": 3.0}], "l": [[4]]})
    write(tmp_path, {"f.parquet": rows})
    wanted = [IndexedColumn(("B", "c"), "long"), A]
    assert index_files(tmp_path, [("b", "C"), ("a",)], dry_run=True).columns == wanted
    with pytest.raises(ZOrderError, match="Use one of its columns: a, B.c, B.x"):
        index_files(tmp_path, [("l",)])
    index_files(tmp_path, [("a",)])
    with pytest.raises(ZOrderError, match="already has an index"):
        index_files(tmp_path, [("a",)])


def test_at_most_32_columns_by_default(tmp_path: Path) -> None:
    write(tmp_path, {"f.parquet": pa.table({f"c{i}": [i] for i in range(40)})})
    assert len(index_files(tmp_path).columns) == 32


def test_columns_without_bounds_are_reported(tmp_path: Path) -> None:
    files = {"f.parquet": pa.table({"a": [1], "x": [1.0], "n": pa.array([None], pa.float32())})}
    write(tmp_path, files)
    done = index_files(tmp_path)
    assert done.unknown == {"x": 1} and pyzorder.files(tmp_path, "x > 5") != []


def test_files_that_stay_unindexed(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    (tmp_path / "notes.txt").write_text("These are the sales of 2024.")
    (tmp_path / "_hidden.parquet").write_text("")
    (tmp_path / "empty.parquet").write_text("")
    os.link(tmp_path / "f0.parquet", os.fsencode(tmp_path) + b"/\xff.parquet")
    done = index_files(tmp_path)
    assert done.indexed == sorted(FILES) and done.total == 5
    assert done.unindexed["notes.txt"].endswith("it has no Parquet footer")
    assert done.unindexed["\udcff.parquet"] == "its name is not UTF-8"
    assert snapshot(tmp_path).pointer.coverage is None


def test_partitioned_folders(tmp_path: Path) -> None:
    """Partition values come from folder names, so such values in the files are not indexed."""
    day, stray = pa.table({"a": [1], "P": [9]}), pa.table({"a": [7]})
    write(tmp_path, {"p=1/f.parquet": day, "p=2/f.parquet": day, "stray.parquet": stray})
    done = index_files(tmp_path)
    assert (done.columns, done.indexed) == ([A], ["p=1/f.parquet", "p=2/f.parquet"])
    assert pyzorder.files(tmp_path, "p = 2 AND a = 1") == [f"{tmp_path}/p=2/f.parquet"]
    assert snapshot(tmp_path).pointer.coverage is None  # another table may contain the stray file


def test_a_partition_column_in_an_index(tmp_path: Path) -> None:
    write(tmp_path, {"p=1/f.parquet": pa.table({"a": [1], "p": [9]})})
    publish(STORE, TableFolder(str(tmp_path)), lambda _: [IndexedColumn(("p",), "integer")])
    index_files(tmp_path)
    assert snapshot(tmp_path).rows["p_minValue"].to_pylist() == [None]


def test_z_values_stay_unknown(tmp_path: Path) -> None:
    """Files do not contain z-values, so the index records the z-values as unknown, not as null."""
    write(tmp_path, FILES)
    curve = IndexedColumn(("zorder_value(a, `s`)",), "binary")
    publish(STORE, TableFolder(str(tmp_path)), lambda _: [A, curve])
    assert index_files(tmp_path).indexed == sorted(FILES)
    rows = snapshot(tmp_path).rows
    assert rows[f"{curve.name}_empty"].to_pylist() == [False] * 3
    assert rows[f"{curve.name}_num_nulls"].null_count == 3


def test_a_partition_in_the_index_of_its_table(tmp_path: Path) -> None:
    make(tmp_path, {"p=1/f.parquet": FILES["f0.parquet"]})
    write(tmp_path, {"p=1/g.parquet": FILES["f1.parquet"], "p=2/g.parquet": FILES["f2.parquet"]})
    assert index_files(tmp_path / "p=1").indexed == ["p=1/g.parquet"]
    assert paths(tmp_path) == ["p=1/f.parquet", "p=1/g.parquet"]
    assert snapshot(tmp_path).pointer.coverage is None
    index_files(tmp_path)
    assert snapshot(tmp_path).pointer.coverage is not None


# ---- other writers ------------------------------------------------------------------------------


def meanwhile(monkeypatch: pytest.MonkeyPatch, action: Callable[[], Any]) -> None:
    """Runs an action after the footers have been read, and before the entries are published."""
    own = indexing._publish

    def publish_later(*args: Any) -> int:
        monkeypatch.setattr(indexing, "_publish", own)
        action()
        return own(*args)

    monkeypatch.setattr(indexing, "_publish", publish_later)


def test_two_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, FILES)
    write(tmp_path, MORE)

    def other() -> None:
        write(tmp_path, {"h.parquet": MORE["g.parquet"]})
        assert index_files(tmp_path).indexed == ["g.parquet", "h.parquet"]

    meanwhile(monkeypatch, other)
    assert index_files(tmp_path).version == 3
    assert paths(tmp_path) == [*sorted(FILES), "g.parquet", "h.parquet"]


def test_many_at_once(tmp_path: Path) -> None:
    def add(k: int) -> None:
        write(tmp_path, {f"f{k:02}.parquet": MORE["g.parquet"]})
        index_files(tmp_path)

    tmp_path.mkdir(exist_ok=True)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(add, range(12)))
    assert paths(tmp_path) == [f"f{k:02}.parquet" for k in range(12)]


def test_the_entry_of_a_later_state_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, FILES)
    index_files(tmp_path, [("a",)])
    write(tmp_path, {"f1.parquet": MORE["g.parquet"]})
    entry = FileEntry("f1.parquet", 1, 1, 5, ("a",), "")
    folder = TableFolder(str(tmp_path))

    def other() -> None:
        publish(STORE, folder, lambda old: old, _without("f1.parquet"), [entry])

    meanwhile(monkeypatch, other)
    index_files(tmp_path)
    assert snapshot(tmp_path).rows["num_records"].to_pylist() == [2, 5, 2]


def _without(name: str) -> Callable[[pa.Table], list[bool]]:
    return lambda rows: [path != name for path in rows["path"].to_pylist()]


def test_a_column_whose_type_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, FILES, ["a"])
    write(tmp_path, MORE)
    changed = IndexedColumn(("a",), "timestamp_ntz")
    meanwhile(monkeypatch, lambda: publish(STORE, TableFolder(str(tmp_path)), lambda _: [changed]))
    index_files(tmp_path)
    assert snapshot(tmp_path).columns == (changed,)
    assert snapshot(tmp_path).rows["a_minValue"].null_count == 4


def test_a_dropped_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "t"
    write(table, FILES)

    def drop() -> None:
        for file in table.iterdir():
            file.unlink()
        table.rmdir()

    meanwhile(monkeypatch, drop)
    with pytest.raises(ZOrderError, match="ZORDER_NOT_WRITABLE"):
        index_files(table)
    assert not table.exists()


def test_a_file_that_changes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, FILES)
    own = indexing._footer

    def footer(reader: Any, table: Any, file: Any) -> Any:
        found = own(reader, table, file)
        if file.path == "f1.parquet":
            write(tmp_path, {"f1.parquet": pa.table({"a": [5] * 99, "s": ["x"] * 99})})
        return found

    monkeypatch.setattr(indexing, "_footer", footer)
    done = index_files(tmp_path)
    assert done.unindexed == {"f1.parquet": "it changed while it was read"}
    assert paths(tmp_path) == ["f0.parquet", "f2.parquet"]


def test_no_coverage_after_another_writer_moved_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`index_files` does not publish coverage if another writer has moved files in the meantime.
    That writer has published a snapshot whose coverableSince is the snapshot's own version."""
    make(tmp_path, FILES)

    def other() -> None:
        publish(STORE, TableFolder(str(tmp_path)), lambda old: old)
        pointer = max((tmp_path / "_zorder" / "_index").glob("_v*.json"))
        pointer.write_text(json.dumps({**json.loads(pointer.read_text()), "coverableSince": 2}))

    meanwhile(monkeypatch, other)
    index_files(tmp_path)
    found = snapshot(tmp_path).pointer
    assert (found.version, found.coverage, found.coverable_since) == (3, None, 2)
    index_files(tmp_path)
    found = snapshot(tmp_path).pointer
    assert found.coverage is not None and found.coverable_since == 2


# ---- an unfinished run --------------------------------------------------------------------------


def begin(table: Path, *, committed: bool) -> None:
    """Writes the records of a run that replaces f0 with g. The file g is still staged."""
    journal, incarnation = table / "_zorder" / "_journal", "id"
    journal.mkdir(parents=True)
    (table / f"_zorder.1.{incarnation}").touch()
    write(table, {"_zorder/_staging/_1/_g.parquet.staged": MORE["g.parquet"]})
    staged = table / "_zorder" / "_staging" / "_1" / "_g.parquet.staged"

    def ref(path: Path, name: str) -> dict[str, Any]:
        seen = path.stat()
        return {"path": name, "size": seen.st_size,
                "modificationTime": seen.st_mtime_ns // 1_000_000}  # fmt: skip

    retired = [ref(table / "f0.parquet", "f0.parquet")]
    records: dict[str, dict[str, Any]] = {
        "prepare": {"operation": "OPTIMIZE", "owner": "x", "host": "x", "pid": 1, "started": 1,
                    "began": 1, "lease": 1},
        "retire": {"retire": retired, "add": [ref(staged, "g.parquet")], "folders": [""]},
        "outcome": {"outcome": "COMMIT", "by": "x"},
    }  # fmt: skip
    for kind, fields in records.items():
        if kind != "outcome" or committed:
            record = {"formatVersion": 1, "record": kind, "incarnation": incarnation, **fields}
            (journal / f"_1.{kind}").write_text(json.dumps(record))


@pytest.mark.parametrize("committed", [False, True])
def test_an_unfinished_run(tmp_path: Path, committed: bool) -> None:
    """While a run is unfinished, the files that belong to the table are indexed, even if they are
    staged or retired. Existing index entries are kept."""
    make(tmp_path, {"f0.parquet": FILES["f0.parquet"]})
    write(tmp_path, {"f1.parquet": FILES["f1.parquet"]})
    begin(tmp_path, committed=committed)
    new = ["g.parquet"] if committed else []
    assert index_files(tmp_path).indexed == ["f1.parquet", *new]
    assert paths(tmp_path) == ["f0.parquet", "f1.parquet", *new]
    assert snapshot(tmp_path).pointer.coverage is None
    found = {Path(path).name for path in pyzorder.files(tmp_path, "a >= 30")}
    assert found == ({"_g.parquet.staged"} if committed else set())


# ---- what is rejected or ignored ----------------------------------------------------------------


def test_orc(tmp_path: Path) -> None:
    po.write_table(FILES["f0.parquet"], str(tmp_path / "000000_0"))
    with pytest.raises(ZOrderError, match="Run REFRESH SKIPPING INDEX"):
        index_files(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["000000_0"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("s3://bucket/t", "not on a local disk"),
        ("{tmp}/none", "ZORDER_PATH_NOT_FOUND"),
        ("{tmp}/f0.parquet", "is a file"),
        ("{tmp}/empty", "has no data files"),
        ("{tmp}/delta", "Delta table"),
    ],
)
def test_refused(tmp_path: Path, path: str, said: str) -> None:
    write(tmp_path, FILES)
    (tmp_path / "empty").mkdir()
    write(tmp_path, {"delta/_delta_log/0.parquet": FILES["f0.parquet"]})
    with pytest.raises(ZOrderError, match=said):
        index_files(path.format(tmp=tmp_path))


def change(table: Path, **fields: Any) -> None:
    """Changes fields of the newest pointer."""
    pointer = max((table / "_zorder" / "_index").glob("_v*.json"))
    pointer.write_text(json.dumps({**json.loads(pointer.read_text()), **fields}))


def test_a_newer_format_is_not_replaced(tmp_path: Path) -> None:
    make(tmp_path, FILES)
    change(tmp_path, formatVersion=3)
    write(tmp_path, MORE)
    for dry_run in (False, True):
        with pytest.raises(ZOrderError, match="ZORDER_NEWER_INDEX"):
            index_files(tmp_path, dry_run=dry_run)
    assert versions(STORE, TableFolder(str(tmp_path))) == [1]


@pytest.mark.parametrize(
    "fields", [{"incarnation": "other"}, {"crc32": 1}, {"file": "_snapshot-gone"}]
)
def test_a_broken_index_is_rebuilt(tmp_path: Path, fields: dict[str, Any]) -> None:
    make(tmp_path, FILES, ["s"])
    change(tmp_path, **fields)
    assert index_files(tmp_path) == Outcome([S], 3, sorted(FILES), version=2)
    found = snapshot(tmp_path).pointer
    assert (found.coverage, found.coverable_since) == (None, 2)


def test_a_forged_incarnation(tmp_path: Path) -> None:
    make(tmp_path, FILES)
    (tmp_path / "_zorder" / "_incarnation").write_text("../../other")
    with pytest.raises(ZOrderError, match="ZORDER_UNREADABLE_FILE"):
        index_files(tmp_path)


def test_rows_of_other_folders(tmp_path: Path) -> None:
    """Rows with absolute paths are kept. They belong to partitions outside the table's folder,
    which `index_files` does not list."""
    write(tmp_path, FILES)
    names = ["file:/elsewhere/f.parquet", "../up.parquet"]
    entries = [FileEntry(name, 1, 1, 1, (), "") for name in names]
    publish(STORE, TableFolder(str(tmp_path)), lambda _: [A], entries=entries)
    index_files(tmp_path)
    assert paths(tmp_path) == [*sorted(FILES), "file:/elsewhere/f.parquet"]
    assert snapshot(tmp_path).pointer.coverage is None


@pytest.mark.parametrize("data_type", ["decimal", "decimal(99,2)"])
def test_forged_types(tmp_path: Path, data_type: str) -> None:
    make(tmp_path, FILES)
    change(tmp_path, columns=[{"path": ["a"], "type": data_type}])
    assert index_files(tmp_path) == Outcome([A, S], 3, sorted(FILES), version=2)


@pytest.mark.parametrize("name", ["_zorder", "_zorder/_index"])
def test_planted_links(tmp_path: Path, name: str) -> None:
    table, elsewhere = tmp_path / "t", tmp_path / "elsewhere"
    write(table, FILES)
    elsewhere.mkdir()
    (table / name).parent.mkdir(exist_ok=True)
    (table / name).symlink_to(elsewhere)
    with pytest.raises(ZOrderError, match="ZORDER_SYMBOLIC_LINK"):
        index_files(table)
    assert list(elsewhere.iterdir()) == []


def test_a_planted_file(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    (tmp_path / "_zorder").write_text("")
    with pytest.raises(ZOrderError, match="ZORDER_NOT_WRITABLE"):
        index_files(tmp_path)


def test_links_to_files_of_another_user(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(tmp_path, {"secret.parquet": MORE["g.parquet"], "t/own.parquet": FILES["f0.parquet"]})
    try:
        os.chown(tmp_path / "secret.parquet", 12345, -1)
    except PermissionError:
        pytest.skip("only root can give files away")
    (table / "link.parquet").symlink_to(tmp_path / "secret.parquet")
    done = index_files(table)
    assert done.unindexed == {"link.parquet": "it is reached through another user's link"}
    assert paths(table) == ["own.parquet"]


def test_no_right_to_write_and_no_space(tmp_path: Path) -> None:
    with disks.small_disk(tmp_path / "disk") as disk:
        write(disk.folder / "t", FILES)
        with disk.read_only(), pytest.raises(ZOrderError, match="ZORDER_NOT_WRITABLE"):
            index_files(disk.folder / "t")
        with disk.room(files=0), pytest.raises(ZOrderError, match="ZORDER_NO_SPACE"):
            index_files(disk.folder / "t")
        assert index_files(disk.folder / "t").version == 2
