"""Snapshots of the index table are loaded exactly as they were published, and a damaged snapshot
is treated as missing."""

from __future__ import annotations

import json
import shutil
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from benchmarks import jvm_loops
from tests.support import indexes
from tests.support.scans import opened, settings

# (SQL type, a low value and a high value as SQL literals)
TYPES: list[tuple[str, str, str]] = [
    ("boolean", "false", "true"),
    ("tinyint", "-128Y", "127Y"),
    ("smallint", "-32768S", "32767S"),
    ("int", "-2147483648", "2147483647"),
    ("bigint", "-9223372036854775808L", "9223372036854775807L"),
    ("float", "float('-Infinity')", "float(1.5)"),
    ("double", "double(-0.0)", "double('Infinity')"),
    ("decimal(9,2)", "-1234567.89", "1234567.89"),
    ("decimal(18,0)", "-999999999999999999", "999999999999999999"),
    ("decimal(38,3)", "-99999999999999999999999999999999999.999", "1000.000"),
    ("date", "date'0001-01-01'", "date'9999-12-31'"),
    (
        "timestamp",
        "timestamp'1890-01-01 00:00:00.000001 UTC'",
        "timestamp'2199-12-31 00:00:00 UTC'",
    ),
    (
        "timestamp_ntz",
        "timestamp_ntz'0001-01-01 00:00:00.000001'",
        "timestamp_ntz'9999-12-31 23:59:59.999999'",
    ),
    ("interval day to second", "interval '-1' day", "interval '1 02:03:04.000005' day to second"),
    ("string", "''", "'\U0001f600 z'"),
    ("binary", "X''", "X'FF00'"),
]


def write(spark: SparkSession, path: Path, query: str) -> None:
    spark.sql(query).coalesce(1).write.mode("append").option(
        "datetimeRebaseMode", "CORRECTED"
    ).parquet(str(path))


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    """The folder of a table with two files."""
    path = tmp_path / "t"
    write(spark, path, "SELECT id, CAST(id AS STRING) AS s FROM range(10)")
    write(spark, path, "SELECT id, CAST(id AS STRING) AS s FROM range(10, 20)")
    return path


def pointers(path: Path) -> list[Path]:
    return sorted((path / "_zorder" / "_index").glob("_v*.json"))


@pytest.mark.parametrize("sql_type, least, greatest", TYPES, ids=[t[0] for t in TYPES])
def test_values_survive_in_their_own_type(
    spark: SparkSession, tmp_path: Path, sql_type: str, least: str, greatest: str
) -> None:
    path = tmp_path / "t"
    write(
        spark,
        path,
        f"SELECT CAST(v AS {sql_type}) AS v FROM VALUES ({least}), ({greatest}), (NULL) AS t(v)",
    )
    write(spark, path, f"SELECT CAST(NULL AS {sql_type}) AS v")
    assert indexes.build(spark, path, "parquet") == 1
    rows = indexes.table(spark, path)
    assert rows == indexes.loaded(spark, path)
    expected = spark.sql(
        f"SELECT CAST({least} AS {sql_type}) AS a, CAST({greatest} AS {sql_type}) AS b"
    ).first()
    full = [r for r in rows if not r["v_empty"]]
    assert len(rows) == 2 and len(full) == 1
    assert (full[0]["v_minValue"], full[0]["v_maxValue"]) == (expected["a"], expected["b"])
    assert full[0]["v_num_nulls"] == 1


def test_the_session_does_not_change_the_format(spark: SparkSession, folder: Path) -> None:
    """Session settings, such as the timestamp type of files, do not affect the format of the
    index."""
    changed = {
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.caseSensitive": "true",
    }
    path = folder.parent / "stamps"
    write(spark, path, "SELECT timestamp'2020-01-01 00:00:00.000001 UTC' AS t, 1.5BD AS d")
    with settings(spark, **changed):
        indexes.build(spark, path, "parquet")
        assert indexes.table(spark, path) == indexes.loaded(spark, path)
    assert indexes.loaded(spark, path)[0]["t_minValue"] is not None


def test_names_below_zorder_hide_from_everybody(spark: SparkSession, folder: Path) -> None:
    indexes.build(spark, folder, "parquet")
    below = [p for p in (folder / "_zorder").rglob("*")]
    assert below
    assert all(p.name.startswith("_") for p in below)
    assert not [p for p in below if p.suffix in (".parquet", ".orc", ".crc")]
    assert spark.read.parquet(str(folder)).count() == 20


def test_versions_count_up_and_old_ones_go(spark: SparkSession, folder: Path) -> None:
    indexes.build(spark, folder, "parquet")
    for expected in range(2, 15):
        assert indexes.remove(spark, folder, []) == expected
    assert indexes.version(spark, folder) == 14
    assert len(pointers(folder)) == 10
    assert len(list((folder / "_zorder" / "_index").glob("_snapshot-*"))) == 10
    assert len(indexes.loaded(spark, folder)) == 2


def test_many_forged_pointers(spark: SparkSession, folder: Path) -> None:
    """Old versions are deleted with one listing of the index, not with one listing per version."""
    indexes.build(spark, folder, "parquet")
    index = folder / "_zorder" / "_index"
    (pointer,) = index.glob("_v*.json")
    newest = {**json.loads(pointer.read_text()), "version": 3000}
    pointer.unlink()
    (index / f"_v{3000:020d}.json").write_text(json.dumps(newest))
    for version in range(1, 2001):
        (index / f"_v{version:020d}.json").touch()
    start = time.monotonic()
    write(spark, folder, "SELECT id, CAST(id AS STRING) AS s FROM range(20, 21)")
    assert time.monotonic() - start < 20  # one listing per version would take over a minute
    assert len(list(index.glob("_v*.json"))) == 10


def test_publishers_at_the_same_time_lose_nothing(spark: SparkSession, folder: Path) -> None:
    """If several concurrent writers each remove one entry, no removal is lost."""
    for i in range(4):
        write(spark, folder, f"SELECT id, 'x' AS s FROM range({i}, {i + 3})")
    indexes.build(spark, folder, "parquet")
    names = [row["path"] for row in indexes.loaded(spark, folder)]
    assert len(names) == 6
    threads = [
        threading.Thread(target=indexes.remove, args=(spark, folder, [name])) for name in names[:5]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [row["path"] for row in indexes.loaded(spark, folder)] == names[5:]
    assert indexes.version(spark, folder) == 6


def test_threads_that_load_at_the_same_time_see_the_same(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    """Threads that load indexes at the same time do not share a reader's state, so they all see the
    same entries. Each thread loads the index of its own copy of the table."""
    indexes.build(spark, folder, "parquet")
    expected = indexes.loaded(spark, folder)
    copies = [tmp_path / f"copy {i}" for i in range(40)]
    answers: dict[Path, list[Row]] = {}

    def load(copy: Path) -> None:
        answers[copy] = indexes.loaded(spark, copy)

    threads = [threading.Thread(target=load, args=(copy,), daemon=True) for copy in copies]
    for copy in copies:
        shutil.copytree(folder, copy)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert answers == dict.fromkeys(copies, expected)


def test_the_row_groups_of_a_large_index(spark: SparkSession) -> None:
    """Spark filters a large index by row group. It selects the same files as the driver, although
    the driver filters all entries at once."""
    helpers = jvm_loops.load(spark)
    made = helpers.skipping.files.PlanningBenchmark(spark._jsparkSession, 150_000)
    assert made.rowGroups() > 1
    in_driver = made.selected()
    assert 0 < in_driver < 150_000
    with settings(spark, spark__sql__zorder__index__driverLimit="1"):
        assert made.selected() == in_driver


def test_a_large_index_that_is_gone(spark: SparkSession, folder: Path) -> None:
    indexes.build(spark, folder, "parquet")
    frame = spark.read.parquet(str(folder))
    with settings(spark, spark__sql__zorder__index__driverLimit="1"):
        assert len(opened(frame.where("id = 3"))) == 1
        (data,) = (folder / "_zorder" / "_index").glob("_snapshot-*")
        data.unlink()
        assert len(opened(frame.where("id = 4"))) == 2
        assert frame.where("id = 4").count() == 1


def test_dropped_index_is_gone_and_a_new_one_begins(spark: SparkSession, folder: Path) -> None:
    indexes.build(spark, folder, "parquet")
    assert len(indexes.loaded(spark, folder)) == 2
    indexes.drop(spark, folder)
    assert indexes.version(spark, folder) == 0
    write(spark, folder, "SELECT id, 'x' AS s FROM range(3)")
    assert indexes.build(spark, folder, "parquet") == 1
    assert len(indexes.loaded(spark, folder)) == 3


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 0x55
    file.write_bytes(bytes(content))


def newer(file: Path) -> None:
    content = json.loads(file.read_text())
    content["formatVersion"] = 99
    file.write_text(json.dumps(content))


def poor(file: Path) -> None:
    content = json.loads(file.read_text())
    del content["crc32"]
    file.write_text(json.dumps(content))


POINTER_DAMAGE = [truncate, newer, poor, lambda f: f.write_text(""), lambda f: f.write_text("{}")]
DATA_DAMAGE = [truncate, flip, lambda f: f.unlink(), lambda f: f.write_bytes(b"")]


@pytest.mark.parametrize("damage", POINTER_DAMAGE)
def test_damaged_pointer_is_no_index(spark: SparkSession, folder: Path, damage) -> None:
    indexes.build(spark, folder, "parquet")
    damage(pointers(folder)[0])
    assert indexes.version(spark, folder) == 0
    assert indexes.build(spark, folder, "parquet") == 2
    assert len(indexes.loaded(spark, folder)) == 2


@pytest.mark.parametrize("damage", DATA_DAMAGE)
def test_damaged_snapshot_is_no_index(spark: SparkSession, folder: Path, damage) -> None:
    indexes.build(spark, folder, "parquet")
    damage(next((folder / "_zorder" / "_index").glob("_snapshot-*")))
    assert indexes.loaded(spark, folder) == []
    assert indexes.build(spark, folder, "parquet") == 2
    assert len(indexes.loaded(spark, folder)) == 2


def test_names_that_need_care(spark: SparkSession, tmp_path: Path) -> None:
    """The index is correct for column names with dots, backticks and spaces, and for names that are
    also columns of the index table."""
    path = tmp_path / "a t%20:b"
    write(
        spark,
        path,
        "SELECT 1 AS `a.b`, 2 AS `a``b`, 3 AS `size`, 4 AS `size_minValue`, 5 AS path, "
        "named_struct('b', 6, 'c d', 'x') AS a, 'é' AS `ö`",
    )
    indexes.build(spark, path, "parquet")
    row = indexes.loaded(spark, path)[0]
    assert row == indexes.table(spark, path)[0]
    expected = {
        "`a.b`": 1, "`a``b`": 2, "size": 3, "size_minValue": 4, "path": 5, "a.b": 6, "a.c d": "x",
        "ö": "é",
    }  # fmt: skip
    assert {name: row[name + "_minValue"] for name in expected} == expected


def test_a_column_that_the_table_has_lost(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(spark, path, "SELECT id, id / 7D AS x FROM range(10)")
    spark.sql(f"CREATE SKIPPING INDEX ON '{path}'")
    for file in path.glob("*.parquet"):
        file.unlink()
    write(spark, path, "SELECT id FROM range(10)")
    write(spark, path, "SELECT id FROM range(10, 20)")
    spark.sql(f"REFRESH SKIPPING INDEX ON '{path}'")
    assert len(opened(spark.read.parquet(str(path)).where("id = 12"))) == 1
