"""If `_zorder` contains unexpected files or folders, queries still return the table's rows.
Statements either succeed or fail with one of pyzorder's errors."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyzorder.cli import output
from pyzorder.errors import ZOrderError
from pyzorder.index import snapshot_writer
from pyzorder.index.journal import parsed
from pyzorder.index.snapshots import latest
from pyzorder.index.stores import LocalStore
from pyzorder.index.table_folder import TableFolder
from pyzorder.index.visible_files import visible_files
from tests.support import scans
from tests.support.processes.journal_driver import killed
from tests.support.sampled import long
from tests.support.tables import delete_folder, ids

ROWS = list(range(60))

#: The folders that pyzorder creates, relative to the table's folder.
PLACES = [
    f"_zorder{below}"
    for below in ("", "/_journal", "/_index", "/_retired", "/_staging", "/_carried",
                  "/_retired/_1", "/_staging/_2", "/_carried/_1")
]  # fmt: skip

#: Names that do not belong to any run. Each name caused a failure in the past.
ODD = [
    "_zorder/_journal/_99999999999999999999.done",
    "_zorder/_journal/_9223372036854775807.done",
    "_zorder/_journal/_9223372036854775807.prepare",
    "_zorder/_journal/_0.prepare",
    "_zorder/_journal/_007.retire",
    "_zorder/_journal/_-1.done",
    "_zorder/_journal/_٣.done",
    "_zorder/_retired/_99999999999999999999/x.retired",
    "_zorder/_staging/_99999999999999999999/x.staged",
    "_zorder/_index/_v00999999999999999999.json",
]


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a table with a journal, an index and retired files."""
    table = tmp_path_factory.mktemp("odd") / "source"
    spark.range(0, 60, 1, 3).selectExpr("id", "id * 7 % 60 AS other").write.parquet(str(table))
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    return table


def rows(spark: SparkSession, table: Path) -> list[int]:
    """Returns the ids. Asserts that reads return the same ids if skipping or the journal is turned
    off."""
    found = ids(spark.read.parquet(str(table)).where("id >= 0"))
    for switch in ("skipping.enabled", "journal.overlay"):
        name = f"spark__sql__zorder__{switch.replace('.', '__')}"
        with scans.settings(spark, **{name: "false"}):
            assert ids(spark.read.parquet(str(table))) == found
    return found


STATEMENTS = [
    "OPTIMIZE '{}' FULL ZORDER BY (other)",
    "VACUUM '{}' RETAIN 0 HOURS",
    "REFRESH SKIPPING INDEX ON '{}'",
    "RESTORE '{}' TO BEFORE OPTIMIZE",
    "DESCRIBE SKIPPING INDEX ON '{}'",
    "SELECT * FROM optimize_history('{}')",
]


@pytest.mark.parametrize("name", long(ODD, *ODD[::3]))
def test_names_of_no_run(spark: SparkSession, source: Path, tmp_path: Path, name: str) -> None:
    table = shutil.copytree(source, tmp_path / "t")
    (table / name).parent.mkdir(parents=True, exist_ok=True)
    (table / name).touch()
    assert rows(spark, table) == ROWS
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        for statement in STATEMENTS:
            try:
                spark.sql(statement.format(table)).collect()
            except PySparkException as refused:
                assert "ZORDER_CANNOT_RESTORE" in str(refused)
            assert rows(spark, table) == ROWS, statement
    lock = [p.name for p in (table / "_zorder" / "_journal").glob("_[0-9].prepare")]
    assert "_2.prepare" in lock


digits = st.one_of(
    st.integers(0, 4).map(str),
    st.integers(10**17, 10**21).map(str),
    st.text("0123456789٣x-", max_size=22),
)
kinds = st.sampled_from(
    ["prepare", "retire", "switch", "partitions", "outcome", "done", "lease", "x", "settled"]
)
names = st.one_of(
    st.builds("_{}.{}".format, digits, kinds),
    st.builds("_{}".format, digits),
    st.builds("_v{:0>20}.json".format, digits),
    st.builds("_snapshot-{}-x".format, digits),
    st.builds("_zorder.{}.x".format, digits),
    st.text(
        st.characters(exclude_categories=("Cs",), exclude_characters="/\0"), max_size=40
    ).filter(lambda name: name not in ("", ".", "..")),
)
contents = st.one_of(
    st.binary(max_size=30),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=5,
    ).map(lambda value: json.dumps(value).encode()),
    st.sampled_from(["dir", "link", "link to a folder"]),
)
entries = st.lists(st.tuples(st.sampled_from(PLACES), names, contents), min_size=3, max_size=12)


def put(table: Path, place: str, name: str, content: bytes | str, elsewhere: Path) -> None:
    """Creates a file, folder or link, unless there is already an entry with this name, or an entry
    that is no folder in place of the folder above."""
    path = table / place / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        return
    if os.path.lexists(path):
        return
    if content == "dir":
        path.mkdir()
    elif isinstance(content, str):
        path.symlink_to(elsewhere / "file" if content == "link" else elsewhere)
    else:
        path.write_bytes(content)


@settings(
    max_examples=int(os.environ.get("ODD_ENTRIES", "5")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(added=entries, order=st.permutations(STATEMENTS))
def test_any_names(
    spark: SparkSession,
    source: Path,
    tmp_path: Path,
    added: list[tuple[str, str, bytes | str]],
    order: list[str],
) -> None:
    """Random entries in `_zorder` can make statements fail with one of pyzorder's errors, but no
    row is lost, and the targets of links remain unchanged."""
    for old in tmp_path.iterdir():
        delete_folder(old)
    table, elsewhere = shutil.copytree(source, tmp_path / "t"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("theirs")
    for place, name, content in added:
        put(table, place, name, content, elsewhere)
    assert rows(spark, table) == ROWS
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false",
                        spark__sql__zorder__journal__lease="1s"):  # fmt: skip
        for statement in order[:3]:
            try:
                spark.sql(statement.format(table)).collect()
            except PySparkException as refused:
                assert "ZORDER_" in str(refused), statement
            assert rows(spark, table) == ROWS, statement
    assert [path.name for path in elsewhere.iterdir()] == ["file"]
    assert (elsewhere / "file").read_text() == "theirs"


@pytest.mark.parametrize("place", ["_staging", "_retired"])
def test_a_file_where_a_run_needs_a_folder(
    spark: SparkSession, source: Path, tmp_path: Path, place: str
) -> None:
    """OPTIMIZE fails before its commit if there is a file where it needs a folder, and works after
    the file has been deleted."""
    table = shutil.copytree(source, tmp_path / "t")
    path = table / "_zorder" / place / "_2"
    path.parent.mkdir(exist_ok=True)
    path.touch()
    before = {file.name for file in table.glob("*.parquet")}
    with pytest.raises(PySparkException, match="ZORDER_NOT_A_FOLDER"):
        spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (other)")
    assert {file.name for file in table.glob("*.parquet")} == before
    path.unlink()
    spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (other)")
    assert rows(spark, table) == ROWS


@pytest.mark.parametrize("kind", ["file", "pipe"])
@pytest.mark.parametrize("place", [".", "_journal", "_staging", "_retired"])
def test_a_file_instead_of_a_folder(
    spark: SparkSession, source: Path, tmp_path: Path, place: str, kind: str
) -> None:
    """Statements fail with one sentence if a file or pipe has the name of a folder that they
    need."""
    table = shutil.copytree(source, tmp_path / "t")
    path = table / "_zorder" / place
    shutil.rmtree(path, ignore_errors=True)
    path.touch() if kind == "file" else os.mkfifo(path)
    for statement in ("OPTIMIZE '{}' FULL ZORDER BY (other)", "VACUUM '{}'"):
        with pytest.raises(PySparkException, match="ZORDER_NOT_A_FOLDER"):
            spark.sql(statement.format(table))
    path.unlink()
    spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (other)")
    assert rows(spark, table) == ROWS


def test_folders_named_like_old_snapshots(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """VACUUM ignores folders that have the names of snapshots that it would delete."""
    table = shutil.copytree(source, tmp_path / "t")
    index = table / "_zorder" / "_index"
    spark.sql(f"REFRESH SKIPPING INDEX ON '{table}'")
    first = min(int(path.name[2:-5]) for path in index.glob("_v*.json"))
    (index / f"_snapshot-{first}-x" / "y").mkdir(parents=True)
    for _ in range(12):  # more than the number of snapshots that are kept
        spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (other)")
    assert not (index / f"_v{first:020}.json").exists()
    spark.sql(f"VACUUM '{table}'")
    assert (index / f"_snapshot-{first}-x" / "y").is_dir()
    assert rows(spark, table) == ROWS


@pytest.mark.parametrize("name", ["_v{:020}.json", "_snapshot-{}-x", "_sketch-{}-aa"])
def test_links_named_like_old_snapshots(
    spark: SparkSession, source: Path, tmp_path: Path, name: str
) -> None:
    """VACUUM ignores links to folders that have the names of files that it would delete."""
    table = shutil.copytree(source, tmp_path / "t")
    index = table / "_zorder" / "_index"
    first = min(int(path.name[2:-5]) for path in index.glob("_v*.json"))
    link = index / name.format(first)
    link.unlink(missing_ok=True)
    (tmp_path / "elsewhere" / "y").mkdir(parents=True)
    link.symlink_to(tmp_path / "elsewhere")
    spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (other)")
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        spark.sql(f"VACUUM '{table}' RETAIN 0 HOURS")
    assert not list((table / "_zorder").rglob("*.retired"))
    assert (tmp_path / "elsewhere" / "y").is_dir()
    assert rows(spark, table) == ROWS


@pytest.mark.long
@pytest.mark.parametrize("instead", ["folder", "link to nothing"])
def test_files_replaced(spark: SparkSession, source: Path, tmp_path: Path, instead: str) -> None:
    """No row is lost if one of pyzorder's files is replaced with a folder or a dangling link.

    DONE is not replaced with a dangling link. Listings do not show such a link, so this would have
    the same effect as deleting DONE, the only record that says that the run has ended.
    """
    files = [path for path in (source / "_zorder").rglob("*") if path.is_file()]
    kept = [path for path in files if instead == "folder" or path.suffix != ".done"]
    for number, own in enumerate(kept):
        table = shutil.copytree(source, tmp_path / str(number))
        path = table / own.relative_to(source)
        path.unlink()
        path.mkdir() if instead == "folder" else path.symlink_to(tmp_path / "nothing")
        assert rows(spark, table) == ROWS, own
        with scans.settings(spark, spark__sql__zorder__journal__lease="1s"):
            for statement in STATEMENTS[:4]:
                try:
                    spark.sql(statement.format(table)).collect()
                except PySparkException as refused:
                    assert "ZORDER_" in str(refused), (own, statement)
                assert rows(spark, table) == ROWS, (own, statement)
    assert not (tmp_path / "nothing").exists()


@pytest.mark.variants(1)
@pytest.mark.parametrize("statement", ["OPTIMIZE '{}' ZORDER BY (id)", *STATEMENTS[1:4]])
def test_a_file_instead_of_the_retired_files(
    spark: SparkSession, tmp_path: Path, statement: str
) -> None:
    """If a run was killed and then a file took the place of the folder with its retired files,
    statements fail only with one of pyzorder's errors."""
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(
        str(table)
    )
    killed(table, "mid-retire", f"OPTIMIZE '{table}' ZORDER BY (id)")
    for folder in (table / "_zorder" / "_retired" / "_1").iterdir():
        shutil.rmtree(folder)
        folder.touch()
    with scans.settings(spark, spark__sql__zorder__journal__lease="1s"):
        try:
            spark.sql(statement.format(table)).collect()
        except PySparkException as refused:
            assert "ZORDER_" in str(refused)


@pytest.mark.parametrize("text", [
    b"[" * 200_000,
    b'{"record": "retire", "incarnation": "life", "retire": ' + b"[" * 100_000,
    b'{"record": "retire", "incarnation": "life", "add": [], "folders": [], "retire":'
    b' [{"path": "a", "size": 1e999, "modificationTime": 1}]}',
    b'{"record": "retire", "incarnation": "life", "add": [], "folders": [], "retire":'
    b' [{"path": "\\ud800", "size": 1, "modificationTime": 1}]}',
    b'{"record": "retire", "incarnation": "a/../..", "add": [], "folders": [], "retire": []}',
])  # fmt: skip
def test_texts_that_are_no_records(tmp_path: Path, text: bytes) -> None:
    """Python ignores a record that is deeply nested, contains infinities or lone surrogates, or has
    a path as its incarnation. The JSON parser raises different errors for such records."""
    table = tmp_path / "t"
    (table / "_zorder" / "_journal").mkdir(parents=True)
    (table / "a.parquet").write_bytes(b"abc")
    for kind in ("prepare", "retire"):
        (table / "_zorder" / "_journal" / f"_1.{kind}").write_bytes(text)
    assert parsed(text, "retire") is None
    found = visible_files(LocalStore(), TableFolder(str(table)))
    assert [file.path for file in found] == ["a.parquet"]


@pytest.mark.parametrize("named", [
    "_zorder/_incarnation", "_zorder.1.life", ".x", "a" * 300, "day=" + "x" * 300 + "/a", "loop/a",
])  # fmt: skip
def test_records_of_no_files_in_python(tmp_path: Path, named: str) -> None:
    """Python ignores a record that refers to a hidden file, to a name that is too long for a file
    system, or to a link that points to itself."""
    table = tmp_path / "t"
    (table / "_zorder" / "_journal").mkdir(parents=True)
    (table / "a.parquet").write_bytes(b"abc")
    (table / "loop").symlink_to("loop")
    (table / "_zorder" / "_incarnation").write_text("life")
    for folder in ("", "_zorder"):
        (table / folder / "_zorder.1.life").touch()
    ref = [{"path": named, "size": 4, "modificationTime": 1}]
    for kind, fields in (("prepare", {}), ("retire", {"retire": ref, "add": [], "folders": []})):
        record = {"record": kind, "incarnation": "life", **fields}
        (table / "_zorder" / "_journal" / f"_1.{kind}").write_text(json.dumps(record))
    found = visible_files(LocalStore(), TableFolder(str(table)))
    assert [file.path for file in found] == ["a.parquet"]


@pytest.mark.parametrize("instead", ["pipe", "folder", "link", "long"])
@pytest.mark.parametrize(
    "name", ["_journal/_1.retire", "_incarnation", "_index/_v00000000000000000001.json"]
)
def test_what_is_no_file_in_python(tmp_path: Path, name: str, instead: str) -> None:
    table = tmp_path / "t"
    path = table / "_zorder" / name
    path.parent.mkdir(parents=True)
    (table / "a.parquet").write_bytes(b"abc")
    if instead == "pipe":
        os.mkfifo(path)
    elif instead == "folder":
        path.mkdir()
    elif instead == "link":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, 3 << 30)
    found: list[Any] = []

    def read() -> None:
        store, folder = LocalStore(), TableFolder(str(table))
        found.extend((visible_files(store, folder), latest(store, folder)))

    reader = Thread(target=read, daemon=True)
    reader.start()
    reader.join(30)
    assert not reader.is_alive()
    assert len(found[0]) == 1 and found[1] is None


@pytest.mark.parametrize("place", ["_zorder", "_zorder/_index", "_zorder/_incarnation"])
@pytest.mark.parametrize("leads", ["to a folder", "nowhere"])
def test_links_that_python_would_write_through(tmp_path: Path, place: str, leads: str) -> None:
    table, victim = tmp_path / "t", tmp_path / "victim"
    (table / place).parent.mkdir(parents=True)
    if leads == "to a folder":
        victim.mkdir()
    (table / place).symlink_to(victim)
    with pytest.raises(ZOrderError, match="ZORDER_SYMBOLIC_LINK"):
        snapshot_writer.publish(LocalStore(), TableFolder(str(table)), lambda old: old)
    assert not victim.exists() or not list(victim.iterdir())


def test_texts_that_would_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(["run", "operation"], [[1, "\x1b]0;theirs\x07\x1b[2J"], [2, "[/x] ü\n"]])
    shown = capsys.readouterr().out
    assert "theirs" in shown and "[/x] ü" in shown
    assert not any(c < " " and c != "\n" for c in shown)


@pytest.mark.parametrize("instead", ["a folder", "no id", "not text"])
def test_incarnations_that_python_cannot_make(tmp_path: Path, instead: str) -> None:
    """If `_incarnation` is a folder or its content is invalid, Python's writer fails immediately.
    It does not wait for `_incarnation` to change."""
    path = tmp_path / "_zorder" / "_incarnation"
    path.parent.mkdir()
    if instead == "a folder":
        path.mkdir()
    else:
        path.write_bytes(b"../x" if instead == "no id" else b"\xff\xfe")
    with pytest.raises(ZOrderError, match="ZORDER_UNREADABLE_FILE.*_incarnation.* remove"):
        snapshot_writer.publish(LocalStore(), TableFolder(str(tmp_path)), lambda old: old)


@pytest.mark.parametrize("statement", ["CREATE SKIPPING INDEX ON {}", "OPTIMIZE {} ZORDER BY (id)"])
def test_an_incarnation_that_is_damaged(
    spark: SparkSession, tmp_path: Path, statement: str
) -> None:
    """The error says which file to remove, and the statement succeeds after that."""
    path = tmp_path / "t"
    spark.range(9).write.parquet(str(path))
    damaged = path / "_zorder" / "_incarnation"
    damaged.parent.mkdir()
    damaged.touch()
    statement = statement.format(f"parquet.`{path}`")
    with pytest.raises(PySparkException, match="ZORDER_UNREADABLE_FILE.*_incarnation.* remove"):
        spark.sql(statement)
    damaged.unlink()
    spark.sql(statement)


def test_the_greatest_version_in_python(tmp_path: Path) -> None:
    index = tmp_path / "_zorder" / "_index"
    index.mkdir(parents=True)
    (index / f"_v{10**18 - 2:020d}.json").touch()
    with pytest.raises(ZOrderError, match="ZORDER_NO_RUN_NUMBER"):
        snapshot_writer.publish(LocalStore(), TableFolder(str(tmp_path)), lambda old: old)
    (index / f"_v{10**18 - 2:020d}.json").rename(index / f"_v{10**18 - 1:020d}.json")
    folder = TableFolder(str(tmp_path))
    for version in (1, 2):
        made = snapshot_writer.publish(LocalStore(), folder, lambda old: old)
        assert made.version == version


@pytest.mark.parametrize("what", ["list", "texts", "a text in lists", "none"])
def test_snapshot_that_grows_in_python(tmp_path: Path, what: str) -> None:
    """Python ignores a snapshot of less than 1 MiB that would expand to gigabytes in memory."""
    index = tmp_path / "t" / "_zorder" / "_index"
    index.mkdir(parents=True)
    (index.parent / "_incarnation").write_text("life")
    number = 20_000
    paths = pa.array([f"{os.urandom(8).hex()}.parquet" for _ in range(number)])
    length = 1_000_000 if "text" in what else 100
    count = 3_000_000 if what == "list" else number
    same = pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int32()).fill_null(0), ["x" * length])
    sizes = pa.array([1] * number)
    columns = {
        "path": paths, "size": sizes, "modification_time": sizes, "num_records": sizes,
        "clustered_by": pa.array([["a"]] * number), "read_settings": same,
    }  # fmt: skip
    if what not in ("texts", "none"):
        ends = [0, *[count] * number] if what == "list" else range(number + 1)
        columns["clustered_by"] = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), same)
        columns["read_settings"] = pa.array([""] * number)
    pq.write_table(pa.table(columns), index / "_snapshot-x", store_schema=False)
    data = (index / "_snapshot-x").read_bytes()
    assert len(data) < 1 << 20
    pointer = {"formatVersion": 1, "version": 1, "incarnation": "life", "file": "_snapshot-x",
               "length": len(data), "crc32": zlib.crc32(data), "numFiles": number, "columns": []}  # fmt: skip
    (index / "_v00000000000000000001.json").write_text(json.dumps(pointer))
    before = pa.total_allocated_bytes()
    found = latest(LocalStore(), TableFolder(str(tmp_path / "t")))
    assert (found is None) == (what != "none")
    assert pa.total_allocated_bytes() - before < 100 << 20


@pytest.mark.parametrize("what", ["entries", "list"])
def test_snapshot_that_grows(spark: SparkSession, source: Path, tmp_path: Path, what: str) -> None:
    """A small snapshot whose content exceeds the driver's memory does not make queries fail. Such a
    file is possible, because Parquet stores repeated values only once."""
    table = shutil.copytree(source, tmp_path / "t")
    pointer = sorted((table / "_zorder" / "_index").glob("_v*.json"))[-1]
    said = json.loads(pointer.read_text())
    data = table / "_zorder" / "_index" / said["file"]
    forged = pq.read_table(data)
    if what == "entries":
        number = 5_000_000
        forged = forged.slice(0, 1).take(pa.nulls(number, pa.int64()).fill_null(0))
    else:
        place = forged.schema.get_field_index("clustered_by")
        field = forged.schema.field(place)
        lists = [["x"] * 3_000_000] + [[]] * (forged.num_rows - 1)
        forged = forged.set_column(place, field, pa.array(lists, field.type))
    pq.write_table(forged, data)
    said |= {"length": data.stat().st_size, "crc32": zlib.crc32(data.read_bytes())}
    said["numFiles"] = forged.num_rows
    pointer.write_text(json.dumps(said))
    assert rows(spark, table) == ROWS
    assert spark.read.parquet(str(table)).where("id = 7").count() == 1
    if what == "entries":
        assert latest(LocalStore(), TableFolder(str(table))) is None


@pytest.mark.parametrize("entries", [1, 300 << 20])
def test_snapshot_with_holes(
    spark: SparkSession, source: Path, tmp_path: Path, entries: int
) -> None:
    """A sparse snapshot of hundreds of MiB does not make queries fail. On disk, such a file takes
    almost no space."""
    table = shutil.copytree(source, tmp_path / "t")
    pointer = sorted((table / "_zorder" / "_index").glob("_v*.json"))[-1]
    heap = spark._jvm.java.lang.Runtime.getRuntime().maxMemory()
    length = min(500 << 20, heap * 6 // 10)
    data = table / "_zorder" / "_index" / "_snapshot-x"
    data.touch()
    os.truncate(data, length)
    said = json.loads(pointer.read_text()) | {"file": data.name, "length": length, "crc32": 1}
    pointer.write_text(json.dumps(said | {"numFiles": entries}))
    assert rows(spark, table) == ROWS
    assert spark.read.parquet(str(table)).where("id = 7").count() == 1


@pytest.mark.parametrize("what", ["folders", "something"])
def test_record_that_grows(spark: SparkSession, source: Path, tmp_path: Path, what: str) -> None:
    """A 48 MB record does not make queries fail, although Jackson's tree for this record would not
    fit into a driver with 1 GiB of memory."""
    table = shutil.copytree(source, tmp_path / "t")
    life = (table / "_zorder" / "_incarnation").read_text()
    inner = b",".join([b'"a"' if what == "folders" else b"[]"] * (12 << 20))
    journal = table / "_zorder" / "_journal"
    begun = {"record": "prepare", "incarnation": life, "operation": "OPTIMIZE", "owner": "x",
             "host": "x", "pid": 1, "started": 1, "began": 1, "lease": 1}  # fmt: skip
    (journal / "_2.prepare").write_text(json.dumps(begun))
    text = f'{{"record": "retire", "incarnation": "{life}", "retire": [], "add": [], "'.encode()
    rest = b'": [' + inner + (b"]}" if what == "folders" else b'], "folders": []}')
    (journal / "_2.retire").write_bytes(text + what.encode() + rest)
    assert rows(spark, table) == ROWS
    assert parsed((journal / "_2.retire").read_bytes(), "retire") is None


def opened(pipe: Path) -> None:
    """Opens a pipe for writing, so that readers no longer wait for it."""
    with contextlib.suppress(OSError):  # no reader is waiting
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))


def run(spark: SparkSession, table: Path, statement: str | None) -> None:
    if statement is None:
        assert rows(spark, table) == ROWS
    else:
        spark.sql(statement.format(table)).collect()


@pytest.mark.long
@pytest.mark.parametrize("instead", ["pipe", "checksum", "checksum's pipe"])
@pytest.mark.parametrize("begun", [True, False])
def test_reads_that_fail_or_wait(
    spark: SparkSession, source: Path, tmp_path: Path, instead: str, begun: bool
) -> None:
    """No query or statement hangs if one of pyzorder's files is replaced with a pipe, or if its
    checksum file is a pipe or contains a wrong checksum."""
    life = (source / "_zorder" / "_incarnation").read_text()
    records: dict[str, dict[str, object]] = {
        "prepare": {"operation": "OPTIMIZE", "owner": "x", "host": "elsewhere", "pid": 1,
                    "started": 1, "began": 1, "lease": 1},
        "retire": {"retire": [], "add": [], "folders": []},
        "outcome": {"outcome": "COMMIT", "by": "x"},
    }  # fmt: skip
    names = [path.relative_to(source) for path in (source / "_zorder").rglob("*") if path.is_file()]
    more = [Path(f"_zorder/_journal/_2.{kind}") for kind in (*records, "lease")]
    for number, name in enumerate([*names, *more]):
        table = shutil.copytree(source, tmp_path / str(number))
        for kind, record in records.items() if begun else ():
            text = {"formatVersion": 1, "record": kind, "incarnation": life, **record}
            (table / f"_zorder/_journal/_2.{kind}").write_text(json.dumps(text))
        file = table / name
        if "checksum" in instead:
            file.touch()
            file = file.with_name(f".{file.name}.crc")
        file.unlink(missing_ok=True)
        if "pipe" in instead:
            os.mkfifo(file)
        else:
            file.write_bytes(b"crc\0" + (512).to_bytes(4, "big") + b"\0\0\0\1" * 8)
        with (
            scans.settings(spark, spark__sql__zorder__journal__lease="1s"),
            ThreadPoolExecutor(1) as pool,
        ):
            for statement in [None, STATEMENTS[0], STATEMENTS[2], None]:
                running = pool.submit(run, spark, table, statement)
                try:
                    running.result(timeout=60)
                except TimeoutError:
                    while not running.done():
                        opened(file)
                        time.sleep(0.1)
                    pytest.fail(f"{statement or 'a query'} hangs on {name}")
                except PySparkException as refused:
                    assert "ZORDER_" in str(refused) and statement, (name, statement, refused)


@pytest.mark.parametrize("statement", [
    "SELECT * FROM parquet.`{}` WHERE id = 7",
    "SELECT * FROM skipping_index('{}')",
])  # fmt: skip
@pytest.mark.parametrize("instead", ["pipe", "link to a pipe"])
def test_pipe_as_checksum_of_a_snapshot(
    spark: SparkSession, source: Path, tmp_path: Path, statement: str, instead: str
) -> None:
    """A query on a large index does not hang if the snapshot's checksum file is a pipe. Spark reads
    a large index through Hadoop's local file system, which opens checksum files."""
    table = shutil.copytree(source, tmp_path / "t")
    index = table / "_zorder" / "_index"
    snapshot = index / json.loads(max(index.glob("_v*.json")).read_text())["file"]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    checksum = snapshot.with_name(f".{snapshot.name}.crc")
    checksum.symlink_to(pipe) if "link" in instead else pipe.rename(checksum)
    with (
        scans.settings(spark, spark__sql__zorder__index__driverLimit="1"),
        ThreadPoolExecutor(1) as pool,
    ):
        running = pool.submit(lambda: spark.sql(statement.format(table)).collect())
        try:
            assert len(running.result(timeout=60)) == 1
        except TimeoutError:
            while not running.done():
                opened(checksum)
                time.sleep(0.1)
            pytest.fail("the query hangs on the checksum file")
        except PySparkException as refused:
            assert "ZORDER_INDEX_NOT_FOUND" in str(refused) and "skipping_index" in statement


def test_pipe_as_checksum_of_a_retired_file(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """RESTORE does not hang if the checksum file of a retired file is a pipe. Hadoop opens the
    checksum files of files that it copies."""
    table = shutil.copytree(source, tmp_path / "t")
    retired = next((table / "_zorder" / "_retired").rglob("*.retired"))
    checksum = retired.with_name(f".{retired.name}.crc")
    checksum.unlink(missing_ok=True)
    os.mkfifo(checksum)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, spark, table, "RESTORE '{}' TO BEFORE OPTIMIZE")
        try:
            running.result(timeout=60)
        except TimeoutError:
            while not running.done():
                opened(checksum)
                time.sleep(0.1)
            pytest.fail("RESTORE hangs on the checksum file")
        except PySparkException as refused:
            assert "ZORDER_" in str(refused)
    assert rows(spark, table) == ROWS


#: The folders that are replaced with links. Each link points to a folder whose files and subfolders
#: have the usual names.
LINKED = ["_zorder", *(place for place in PLACES if place != "_zorder")]


@pytest.mark.parametrize("place", long(LINKED, *LINKED[::3]))
def test_links(spark: SparkSession, source: Path, tmp_path: Path, place: str) -> None:
    """pyzorder does not read, write, move or delete anything through a link in `_zorder`."""
    table, victim = shutil.copytree(source, tmp_path / "t"), tmp_path / "victim"
    if (table / place).exists():
        shutil.move(table / place, victim)
    else:
        (table / place).parent.mkdir(parents=True, exist_ok=True)
        victim.mkdir()
    for name in ("_1/x.retired", "_2/x.staged", "_1.done"):
        (victim / name).parent.mkdir(exist_ok=True)
        (victim / name).touch()
    (table / place).symlink_to(victim)
    before = {path: path.stat().st_mtime_ns for path in [victim, *victim.rglob("*")]}
    assert rows(spark, table) == ROWS
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        for statement in STATEMENTS:
            try:
                spark.sql(statement.format(table)).collect()
            except PySparkException as refused:
                assert str(refused).startswith("[ZORDER_"), statement
            assert rows(spark, table) == ROWS, statement
            now = {path: path.stat().st_mtime_ns for path in [victim, *victim.rglob("*")]}
            assert now == before, statement
