"""OPTIMIZE that fills new folders and switches partitions' locations to them in the catalog.

Who reads here besides Spark is PyArrow, which asks the catalog where each partition lies.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pyarrow.parquet
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.spark import hive_session, scans
from tests.spark.journal_driver import killed
from tests.spark.kill_matrix import reads
from tests.spark.tables import aim_at, data_files, metrics

ALL = list(range(400))
SCHEMA = "id BIGINT, other BIGINT, day STRING"
BY_LOCATION = "TBLPROPERTIES ('zorder.publish.method' = 'location')"

#: Partition of a row: ordinary, one whose name is escaped, null, and one that lies elsewhere.
DAY = "element_at(array('1', 'a b/c:%', NULL, '4'), 1 + int(id % 4)) AS day"


def ids(df: DataFrame) -> list[int]:
    return sorted(row["id"] for row in df.select("id").collect())


def places(spark: SparkSession) -> dict[str, Path]:
    """Where the catalog says that each partition lies, by its value."""
    catalog: Any = spark._jsparkSession.sharedState().externalCatalog()
    nothing: Any = getattr(spark._jvm.scala, "None$")
    listed = catalog.listPartitions("default", "parted", getattr(nothing, "MODULE$"))
    found = [listed.apply(i) for i in range(listed.size())]
    return {one.spec().apply("day"): Path(one.location().getPath()) for one in found}


def read_there(spark: SparkSession) -> list[int]:
    """The rows by an engine that knows nothing of pyzorder."""
    found: list[int] = []
    for place in places(spark).values():
        form = "orc" if any(p.suffix == ".orc" for p in data_files(place)) else "parquet"
        rows = pyarrow.dataset.dataset(str(place), format=form).to_table(columns=["id"])
        found += rows.column("id").to_pylist()
    return sorted(found)


def declare(home: Path, provider: str = "parquet") -> list[str]:
    return [
        f"CREATE TABLE parted ({SCHEMA}) USING {provider} PARTITIONED BY (day) LOCATION '{home}' "
        f"{BY_LOCATION}",
        "MSCK REPAIR TABLE parted",
        f"ALTER TABLE parted ADD PARTITION (day = '4') LOCATION '{home.parent / 'elsewhere'}'",
    ]


def make(spark: SparkSession, folder: Path, provider: str = "parquet") -> Path:
    """The external table `parted`, of four partitions with four files each."""
    home = folder / "t"
    rows = spark.range(0, 400, 1, 4).selectExpr("id", "id * 7919 % 400 AS other", DAY)
    rows.write.partitionBy("day").format(provider).save(str(home))
    (home / "day=4").rename(folder / "elsewhere")
    for statement in declare(home, provider):
        spark.sql(statement)
    aim_at(spark, folder, 16)
    return home


@pytest.fixture(autouse=True)
def _dropped(spark: SparkSession) -> Iterator[None]:
    yield
    spark.sql("DROP TABLE IF EXISTS parted")


def optimize(spark: SparkSession, how: str = "ZORDER BY (id, other)") -> DataFrame:
    return spark.sql(f"OPTIMIZE parted {how}")


def vacuumed(spark: SparkSession) -> set[str]:
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        told = {row.path for row in spark.sql("VACUUM parted RETAIN 0 HOURS DRY RUN").collect()}
        gone = {row.path for row in spark.sql("VACUUM parted RETAIN 0 HOURS").collect()}
    assert told == gone
    return gone


@pytest.mark.parametrize("provider", ["parquet", "orc"])
def test_switch(spark: SparkSession, tmp_path: Path, provider: str) -> None:
    """The old folders are not touched; the table's index knows the files in the new ones."""
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


def test_life(spark: SparkSession, tmp_path: Path) -> None:
    """INSERT, OPTIMIZE of the new rows, RESTORE and VACUUM, one after the other."""
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
    with pytest.raises(PySparkException, match="ZORDER_CANNOT_RESTORE.*undone already"):
        spark.sql("RESTORE parted TO BEFORE OPTIMIZE")

    (start["1"] / "archive").mkdir()
    (start["1"] / "archive" / "theirs").write_text("not ours")
    gone = vacuumed(spark)
    assert not any(str(place) in path for path in gone for place in third.values())
    assert {p.name for p in home.iterdir() if p.is_dir()} == {"_zorder", "day=1"}
    assert (start["1"] / "archive" / "theirs").exists()
    filled = {place.parent for place in third.values()}
    assert {p for p in tmp_path.iterdir()} == {home, start["4"], *filled}
    assert not list(start["4"].iterdir())  # a name that someone chose: it may be wanted again
    assert read_there(spark) == ids(spark.table("parted")) == [*ALL, 1000, 1001, 2000]
    assert vacuumed(spark) == set()


REFUSED: dict[str, tuple[str, str]] = {
    "by path": (
        "ALTER TABLE parted SET TBLPROPERTIES ('zorder.readers.byPath' = 'true')",
        "by the path",
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
        with pytest.raises(PySparkException, match="ZORDER_SHARED_FOLDER.*leave them out"):
            optimize(spark)
        optimize(spark, "WHERE day = '1' ZORDER BY (id, other)")
    assert ids(spark.table("parted")) == rows


@pytest.mark.parametrize("way", ["SET LOCATION", "DROP and ADD"])
def test_a_partition_that_comes_back(spark: SparkSession, tmp_path: Path, way: str) -> None:
    """To the folder it was switched away from; what is inserted there is not late for that switch."""
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
    """While partitions are switched again and again, who asks for the rows gets all of them."""
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


def append(place: Path, row: int) -> None:
    """A file by another engine; the day is that of the folder."""
    file = place / f"_by-hand-{row}.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"id": [row], "other": [row]}), file)
    file.rename(file.with_name(file.name[1:]))


def test_others_append(spark: SparkSession, tmp_path: Path) -> None:
    """Files that come into the folder that the catalog has just named: none is lost or doubled."""
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
    assert len(appended) > 5
    assert read_there(spark) == ids(spark.table("parted")) == [*ALL, *appended]


def test_written_behind(spark: SparkSession, tmp_path: Path) -> None:
    """Who knows the old folder: what is added there is carried over once, an overwrite is told."""
    make(spark, tmp_path)
    old = places(spark)
    optimize(spark)
    append(old["1"], 1000)
    for _ in range(2):
        spark.sql("VACUUM parted")
        assert read_there(spark) == ids(spark.table("parted")) == [*ALL, 1000]
    for path in data_files(old["1"]):
        path.unlink()
    append(old["1"], 2000)
    with pytest.raises(PySparkException, match="ZORDER_OVERWRITTEN_BEHIND"):
        spark.sql("VACUUM parted").collect()


#: Where a kill leaves the table, and whether the next writer switches its partitions.
POINTS = {
    "switch-recorded": False,
    "after-markers": False,
    "after-index": False,
    "switch-filled": False,
    "switch-committed": True,
    "mid-move-in": True,
    "before-switch": True,
}


def killed_at(spark: SparkSession, home: Path, point: str) -> None:
    """The catalog of the process that is killed is gone with it: here nothing is switched."""
    before = places(spark)
    killed(home, point, "; ".join([*declare(home), "OPTIMIZE parted ZORDER BY (id, other)"]))
    assert places(spark) == before
    with reads("before", point):
        assert read_there(spark) == ids(spark.table("parted")) == ALL


@pytest.mark.parametrize(
    "point",
    [p if p == "mid-move-in" else pytest.param(p, marks=pytest.mark.crash) for p in POINTS],
)
def test_killed(spark: SparkSession, tmp_path: Path, point: str) -> None:
    home = make(spark, tmp_path)
    before = places(spark)
    killed_at(spark, home, point)
    killed(home, "recovery-decided", "; ".join([*declare(home), "VACUUM parted"]))
    with reads("during", point):
        assert read_there(spark) == ids(spark.table("parted")) == ALL
    spark.sql("VACUUM parted")  # the next writer
    moved = {day for day, place in places(spark).items() if place != before[day]}
    assert moved == (set(before) if POINTS[point] else set())
    with reads("after", point):
        assert read_there(spark) == ids(spark.table("parted")) == ALL
    assert POINTS[point] or {p.name for p in tmp_path.iterdir()} == {"t", "elsewhere"}
    optimize(spark, "FULL ZORDER BY (id)")
    assert read_there(spark) == ids(spark.table("parted")) == ALL


#: What others do between COMMIT and the switch: statement, the rows then, what stays where it is.
MEANWHILE: dict[str, tuple[str, Callable[[int], bool], set[str]]] = {
    "append": ("INSERT INTO parted VALUES (1000, 1, '1')", lambda id: True, set()),
    "overwrite": (
        "INSERT OVERWRITE parted PARTITION (day = '1') VALUES (1000, 1)",
        lambda id: id % 4 != 0,
        {"1"},
    ),
    "drop": ("ALTER TABLE parted DROP PARTITION (day = '1')", lambda id: id % 4 != 0, set()),
}


@pytest.mark.parametrize("case", [pytest.param(c, marks=pytest.mark.crash) for c in MEANWHILE])
def test_changed_meanwhile(spark: SparkSession, tmp_path: Path, case: str) -> None:
    home = make(spark, tmp_path)
    before = places(spark)
    killed_at(spark, home, "switch-committed")
    statement, stays, unmoved = MEANWHILE[case]
    spark.sql(statement)
    expected = [id for id in ALL if stays(id)] + ([1000] if case != "drop" else [])
    for _ in range(2):
        spark.sql("VACUUM parted")
        with reads("after", "switch-committed"):
            assert read_there(spark) == ids(spark.table("parted")) == expected
    assert {day for day, place in places(spark).items() if place == before[day]} == unmoved


#: Where a process is killed, and whether a metastore names the new folders then, and in the end.
IN_METASTORE = {
    "switch-filled": (False, False),
    "before-switch": (False, True),
    "after-switch": (True, True),
}


TABLES = [
    "TABLE t (id BIGINT, day BIGINT) USING parquet PARTITIONED BY (day)",
    "EXTERNAL TABLE t (id BIGINT) PARTITIONED BY (day BIGINT) STORED AS PARQUET",
]


@pytest.mark.crash
@pytest.mark.parametrize("table", TABLES, ids=["Spark's", "Hive's"])
@pytest.mark.parametrize("point", IN_METASTORE)
def test_killed_in_metastore(spark: SparkSession, tmp_path: Path, point: str, table: str) -> None:
    """A Spark without pyzorder, after the kill and after the next writer: each row once."""
    home = tmp_path / "t"
    spark.range(0, 400, 1, 4).selectExpr("id", "id % 2 AS day").write.partitionBy("day").parquet(
        str(home)
    )
    hive_session.run(
        tmp_path,
        "t",
        f"CREATE {table} LOCATION '{home}' {BY_LOCATION}",
        "MSCK REPAIR TABLE t",
        "OPTIMIZE t ZORDER BY (id)",
        killed_at=point,
    )
    for writer, switched in zip((None, "VACUUM t"), IN_METASTORE[point], strict=True):
        if writer:
            assert hive_session.run(tmp_path, "t", writer)[0] == ALL
        found, place = hive_session.run(tmp_path, "t", plain=True, partition="day = 1")
        assert found == ALL
        assert ("-zorder-" in str(place)) == switched
