"""OPTIMIZE can publish its result by filling new folders and then switching the locations of the
partitions in the catalog to these folders."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support import scans
from tests.support.partitioned_table import (
    ALL,
    SCHEMA,
    append,
    make,
    optimize,
    places,
    read_there,
    vacuumed,
)
from tests.support.staleness import bound, fresh
from tests.support.tables import data_files, ids, metrics, recorded_runs

pytestmark = pytest.mark.usefixtures("parted")


@pytest.mark.parametrize("provider", ["parquet", "orc"])
def test_switch(spark: SparkSession, tmp_path: Path, provider: str) -> None:
    """OPTIMIZE leaves the old folders unchanged, and the table's index has entries for the files in
    the new folders."""
    home = make(spark, tmp_path, provider)
    old, before = places(spark), data_files(tmp_path)
    times = {path: path.stat().st_mtime_ns for path in before}
    planned = spark.table("parted")
    planned._jdf.queryExecution().executedPlan()
    done = metrics(optimize(spark))
    new = places(spark)
    assert done.numFilesRemoved == 16 and done.partitionsOptimized == 4
    assert {path: path.stat().st_mtime_ns for path in before} == times
    [filled] = {place.parent for place in new.values()}
    assert filled.parent == home.parent and filled.name.startswith("t-zorder-")
    assert {p.name for p in new.values()} == {p.name for p in old.values()} - {"elsewhere"} | {
        "day=4"
    }
    assert read_there(spark) == ids(spark.table("parted")) == ids(planned) == ALL
    for day, row in (("day = '1'", 8), ("day IS NULL", 10), ("day = 'a b/c:%'", 9)):
        found = spark.table("parted").where(f"{day} AND id = {row}")
        assert ids(found) == [row] and len(scans.opened(found)) <= 2
    assert metrics(optimize(spark)).numFilesRemoved == 0
    visible = [p for p in filled.rglob("*") if "_zorder" not in p.parts]
    assert not [p for p in visible if p.is_file() and p.suffix[1:] != provider]


def test_one_partition(spark: SparkSession, tmp_path: Path) -> None:
    make(spark, tmp_path)
    old = places(spark)
    optimize(spark, "WHERE day = '1' ZORDER BY (id)")
    assert {day for day, place in places(spark).items() if place != old[day]} == {"1"}
    assert read_there(spark) == ids(spark.table("parted")) == ALL


def test_inserted_files_are_indexed(spark: SparkSession, tmp_path: Path) -> None:
    make(spark, tmp_path)
    optimize(spark)
    days = ["'1'", "'a b/c:%'", "NULL", "'4'"]
    values = ", ".join(f"({1000 + n}, 1, {day})" for n, day in enumerate(days))
    spark.sql(f"INSERT INTO parted SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")
    assert ids(spark.table("parted")) == [*ALL, 1000, 1001, 1002, 1003]
    for id in range(1000, 1004):
        found = spark.table("parted").where(f"id = {id}")
        assert ids(found) == [id] and len(scans.opened(found)) == 1


def test_lifecycle(spark: SparkSession, tmp_path: Path) -> None:
    """INSERT, OPTIMIZE of the new rows, RESTORE and VACUUM work when they run one after another."""
    home = make(spark, tmp_path)
    start = places(spark)
    optimize(spark)
    first = places(spark)
    kept = {path.name for path in data_files(first["1"])}
    spark.sql("INSERT INTO parted VALUES (1000, 1, '1'), (1001, 2, '4')")
    with scans.settings(spark, spark__sql__zorder__optimize__rewriteFactor="0"):
        optimize(spark)
    second = places(spark)
    assert {day for day in first if first[day] != second[day]} == {"1", "4"}
    assert kept <= {path.name for path in data_files(second["1"])}
    assert read_there(spark) == ids(spark.table("parted")) == [*ALL, 1000, 1001]
    assert len(scans.opened(spark.table("parted").where("id = 1001"))) < 5

    spark.sql("INSERT INTO parted VALUES (2000, 1, '1')")
    spark.sql("RESTORE parted TO BEFORE OPTIMIZE")
    third = places(spark)
    assert third["1"] not in (start["1"], first["1"], second["1"])
    assert read_there(spark) == ids(spark.table("parted")) == [*ALL, 1000, 1001, 2000]
    assert kept <= {path.name for path in data_files(third["1"])}
    runs = recorded_runs(spark, "parted")
    with pytest.raises(PySparkException, match="ZORDER_CANNOT_RESTORE.*already been undone"):
        spark.sql("RESTORE parted TO BEFORE OPTIMIZE")
    assert recorded_runs(spark, "parted") == runs

    (start["1"] / "archive").mkdir()
    (start["1"] / "archive" / "theirs").write_text("not ours")
    gone = vacuumed(spark)
    assert not any(str(place) in path for path in gone for place in third.values())
    assert {p.name for p in home.iterdir() if p.is_dir()} == {"_zorder", "day=1"}
    assert (start["1"] / "archive" / "theirs").exists()
    filled = {place.parent for place in third.values()}
    assert {p for p in tmp_path.iterdir()} == {home, start["4"], *filled}
    assert not list(start["4"].iterdir())  # kept, because a user chose its name
    assert read_there(spark) == ids(spark.table("parted")) == [*ALL, 1000, 1001, 2000]
    assert vacuumed(spark) == set()


def test_folders_of_others_stay(spark: SparkSession, tmp_path: Path) -> None:
    """VACUUM deletes a partition's previous folder. If this folder is outside the table's folder,
    VACUUM keeps its parent folders."""
    make(spark, tmp_path)
    place = tmp_path / "other" / "region=1" / "day=5"
    spark.sql(f"ALTER TABLE parted ADD PARTITION (day = '5') LOCATION '{place}'")
    spark.sql("INSERT INTO parted PARTITION (day = '5') VALUES (1000, 1)")
    optimize(spark, "FULL ZORDER BY (id)")
    vacuumed(spark)
    assert not place.exists() and place.parent.exists()


REFUSED: dict[str, tuple[str, str]] = {
    "by path": (
        "ALTER TABLE parted SET TBLPROPERTIES ('zorder.readers.byPath' = 'true')",
        "by its path",
    ),
    "managed": (
        f"DROP TABLE parted; CREATE TABLE parted ({SCHEMA}) USING parquet PARTITIONED BY (day)",
        "managed",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(spark: SparkSession, tmp_path: Path, case: str) -> None:
    make(spark, tmp_path)
    statements, why = REFUSED[case]
    for statement in statements.format(tmp_path).split("; "):
        spark.sql(statement)
    with (
        pytest.raises(PySparkException, match=f"ZORDER_CANNOT_SWITCH_LOCATION.*{why}"),
        scans.settings(spark, spark__sql__zorder__publish__method="location"),
    ):
        optimize(spark, "FULL ZORDER BY (id)").collect()


@pytest.mark.parametrize("method", ["location", "rename"])
def test_two_partitions_in_one_folder(spark: SparkSession, tmp_path: Path, method: str) -> None:
    make(spark, tmp_path)
    spark.sql(f"ALTER TABLE parted ADD PARTITION (day = '5') LOCATION '{tmp_path}/elsewhere'")
    rows = ids(spark.table("parted"))
    with scans.settings(spark, spark__sql__zorder__publish__method=method):
        with pytest.raises(PySparkException, match="ZORDER_SHARED_FOLDER.*More than one partition"):
            optimize(spark)
        optimize(spark, "WHERE day = '1' ZORDER BY (id, other)")
    assert ids(spark.table("parted")) == rows


@pytest.mark.parametrize("way", ["SET LOCATION", "DROP and ADD"])
def test_a_partition_that_comes_back(spark: SparkSession, tmp_path: Path, way: str) -> None:
    """If OPTIMIZE has switched a partition to a new folder and a user sets the partition's location
    back to the old folder, rows that are inserted afterwards are not copied to the new folder."""
    make(spark, tmp_path)
    old = places(spark)["1"]
    optimize(spark)
    if way == "SET LOCATION":
        spark.sql(f"ALTER TABLE parted PARTITION (day = '1') SET LOCATION '{old}'")
    else:
        spark.sql("ALTER TABLE parted DROP PARTITION (day = '1')")
        spark.sql(f"ALTER TABLE parted ADD PARTITION (day = '1') LOCATION '{old}'")
    spark.sql("INSERT INTO parted VALUES (1000, 1, '1')")
    for _ in range(2):
        optimize(spark, "FULL ZORDER BY (id, other)")
        assert ids(spark.table("parted")) == [*ALL, 1000]
    vacuumed(spark)
    assert ids(spark.table("parted")) == [*ALL, 1000]
    assert vacuumed(spark) == set() and not old.exists()


def test_another_table_in_an_old_folder(spark: SparkSession, tmp_path: Path) -> None:
    make(spark, tmp_path)
    old = places(spark)["1"]
    optimize(spark)
    spark.sql(f"CREATE TABLE parted2 (id BIGINT, other BIGINT) USING parquet LOCATION '{old}'")
    try:
        spark.sql("INSERT INTO parted2 VALUES (1000, 1)")
        theirs = ids(spark.table("parted2"))
        vacuumed(spark)
        spark.catalog.refreshTable("parted2")
        assert ids(spark.table("parted2")) == theirs and ids(spark.table("parted")) == ALL
    finally:
        spark.sql("DROP TABLE parted2")


def test_others_read(spark: SparkSession, tmp_path: Path) -> None:
    """Readers always see all rows, even if partitions are switched repeatedly."""
    make(spark, tmp_path)
    wrong: list[object] = []
    ended = threading.Event()

    def reading(read: Callable[[], list[int]]) -> None:
        while not ended.is_set():
            try:
                if (found := read()) != ALL:
                    wrong.append(len(found))
            except Exception as failure:
                wrong.append(failure)

    plain = spark.newSession()
    plain.conf.set("spark.sql.zorder.skipping.enabled", "false")
    plain.conf.set("spark.sql.zorder.journal.overlay", "false")
    reads = (lambda: read_there(spark), lambda: ids(plain.table("parted")),
             lambda: ids(spark.table("parted")))  # fmt: skip
    readers = [threading.Thread(target=reading, args=[read]) for read in reads]
    for reader in readers:
        reader.start()
    for _ in range(3):
        optimize(spark, "FULL ZORDER BY (id, other)")
    ended.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_others_append(spark: SparkSession, tmp_path: Path) -> None:
    """Rows that other writers append during OPTIMIZE are neither lost nor duplicated, even if they
    are written to a folder that has just been replaced."""
    make(spark, tmp_path)
    ended = threading.Event()
    appended: list[int] = []

    def appending() -> None:
        while not ended.is_set():
            append(places(spark)["1"], 1000 + len(appended))
            appended.append(1000 + len(appended))
            ended.wait(0.3)

    writer = threading.Thread(target=appending)
    writer.start()
    for _ in range(3):
        optimize(spark, "FULL ZORDER BY (id, other)")
    ended.set()
    writer.join()
    spark.sql("VACUUM parted")
    assert len(appended) > 2
    assert read_there(spark) == ids(spark.table("parted")) == [*ALL, *appended]


def test_written_behind(spark: SparkSession, tmp_path: Path) -> None:
    """Files that are added to an old folder are copied to the new folder exactly once. If the old
    folder is overwritten, the next write command reports an error."""
    make(spark, tmp_path)
    old = places(spark)
    optimize(spark)
    spark.sql("REFRESH SKIPPING INDEX ON parted")
    append(old["1"], 1000)
    for _ in range(2):
        spark.sql("VACUUM parted")
        assert read_there(spark) == ids(spark.table("parted")) == [*ALL, 1000]
        assert ids(bound(fresh(spark), "1h").table("parted")) == [*ALL, 1000]
    for path in data_files(old["1"]):
        path.unlink()
    append(old["1"], 2000)
    for statement in ("VACUUM parted", "RESTORE parted TO BEFORE OPTIMIZE"):
        with pytest.raises(PySparkException, match="ZORDER_OVERWRITTEN_BEHIND"):
            spark.sql(statement).collect()
