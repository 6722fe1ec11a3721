"""OPTIMIZE can publish its result by filling a new folder and then switching the table's location
in the catalog to this folder.

The tests read the table with both Spark and PyArrow. Like other engines, PyArrow reads all data
files at the location in the catalog.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.support import scans
from tests.support.processes import hive_session
from tests.support.processes.journal_driver import killed
from tests.support.processes.kill_matrix import reads
from tests.support.sampled import crash
from tests.support.staleness import bound, fresh
from tests.support.tables import aim_at, data_files, ids, metrics, recorded_runs

ALL = list(range(400))
BY_LOCATION = "'zorder.publish.method' = 'location'"


def location(spark: SparkSession, table: str = "switched") -> Path:
    """The table's location according to the catalog."""
    catalog: Any = spark._jsparkSession.sharedState().externalCatalog()
    return Path(catalog.getTable("default", table).location().getPath())


def read_there(spark: SparkSession) -> list[int]:
    """The ids that an engine without pyzorder would read."""
    folder = location(spark)
    form = "orc" if any(p.suffix == ".orc" for p in data_files(folder)) else "parquet"
    found = pyarrow.dataset.dataset(str(folder), format=form).to_table(columns=["id"])
    return sorted(found.column("id").to_pylist())


def make(spark: SparkSession, folder: Path, provider: str = "parquet", more: str = "") -> Path:
    """Creates the external table `switched` with eight files. Returns its folder."""
    home = folder / "t"
    spark.range(0, 400, 1, 8).selectExpr("id", "id * 7919 % 400 AS other").write.format(
        provider
    ).save(str(home))
    spark.sql(
        f"CREATE TABLE switched (id BIGINT, other BIGINT) USING {provider} "
        f"LOCATION '{home}' TBLPROPERTIES ({BY_LOCATION} {more})"
    )
    aim_at(spark, home, 8)
    return home


@pytest.fixture(autouse=True)
def _dropped(spark: SparkSession) -> Iterator[None]:
    yield
    spark.sql("DROP TABLE IF EXISTS switched")
    spark.conf.unset("spark.sql.zorder.optimize.targetFileSize")


def optimize(spark: SparkSession, how: str = "ZORDER BY (id, other)") -> DataFrame:
    return spark.sql(f"OPTIMIZE switched {how}")


@pytest.mark.parametrize("name", [" leading", "trailing ", "two\nlines"])
def test_odd_folder_names(spark: SparkSession, tmp_path: Path, name: str) -> None:
    make(spark, tmp_path)
    spark.sql("DROP TABLE switched")
    home = tmp_path / name
    (tmp_path / "t").rename(home)
    entry = f"CREATE TABLE switched (id BIGINT, other BIGINT) USING parquet LOCATION '{home}'"
    spark.sql(f"{entry} TBLPROPERTIES ({BY_LOCATION})")
    optimize(spark)
    assert location(spark).name.startswith(f"{name}-zorder-")
    late = home / "late.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"id": [1000], "other": [1]}), late)
    spark.sql("VACUUM switched")
    assert ids(spark.table("switched")) == [*ALL, 1000]
    spark.sql("RESTORE switched TO BEFORE OPTIMIZE")
    assert ids(spark.table("switched")) == [*ALL, 1000]


@pytest.mark.parametrize("provider", ["parquet", "orc"])
def test_switch(spark: SparkSession, tmp_path: Path, provider: str) -> None:
    """OPTIMIZE leaves the old folder unchanged, and the new folder has its own index."""
    home = make(spark, tmp_path, provider)
    old = {path: path.stat().st_mtime_ns for path in data_files(home)}
    planned, made = spark.table("switched"), spark.read.format(provider).load(str(home))
    planned._jdf.queryExecution().executedPlan()
    done = optimize(spark).collect()[0]
    new = location(spark)
    assert (
        new.parent == home.parent
        and new.name.startswith("t-zorder-")
        and done.path.endswith(str(new))
    )
    assert done.metrics.numFilesRemoved == 8 and done.metrics.numFilesAdded == len(data_files(new))
    assert {path: path.stat().st_mtime_ns for path in data_files(home)} == old
    assert read_there(spark) == ids(spark.table("switched")) == ids(planned) == ids(made) == ALL
    found = spark.table("switched").where("id = 7")
    assert ids(found) == [7] and len(scans.opened(found)) < len(data_files(new))
    assert [path.name for path in new.iterdir() if path.is_dir()] == ["_zorder"]
    assert new.stat().st_mode == home.stat().st_mode


def test_lifecycle(spark: SparkSession, tmp_path: Path) -> None:
    """INSERT, OPTIMIZE of the new rows, RESTORE and VACUUM work when they run one after another."""
    home = make(spark, tmp_path)
    optimize(spark)
    assert metrics(optimize(spark)).numFilesRemoved == 0
    first = location(spark)
    kept = {path.name for path in data_files(first)}
    spark.sql("INSERT INTO switched VALUES (1000, 1), (1001, 2)")
    assert len(scans.opened(spark.table("switched").where("id = 1001"))) == 1
    with scans.settings(spark, spark__sql__zorder__optimize__rewriteFactor="0"):
        optimize(spark)
    second = location(spark)
    assert second != first and kept <= {path.name for path in data_files(second)}
    assert read_there(spark) == ids(spark.table("switched")) == [*ALL, 1000, 1001]
    for value in (7, 1001):
        assert len(scans.opened(spark.table("switched").where(f"id = {value}"))) < 5

    spark.sql("INSERT INTO switched VALUES (2000, 1)")
    spark.sql("RESTORE switched TO BEFORE OPTIMIZE")
    assert location(spark) not in (home, first, second)
    assert read_there(spark) == ids(spark.table("switched")) == [*ALL, 1000, 1001, 2000]
    assert kept <= {path.name for path in data_files(location(spark))}
    runs = recorded_runs(spark, "switched")
    with pytest.raises(PySparkException, match="ZORDER_CANNOT_RESTORE.*already been undone"):
        spark.sql("RESTORE switched TO BEFORE OPTIMIZE")
    assert recorded_runs(spark, "switched") == runs

    (home / "archive").mkdir()
    (home / "archive" / "theirs.parquet").write_bytes(data_files(home)[0].read_bytes())
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        told = {row.path for row in spark.sql("VACUUM switched RETAIN 0 HOURS DRY RUN").collect()}
        gone = {row.path for row in spark.sql("VACUUM switched RETAIN 0 HOURS").collect()}
    assert told == gone and len(gone) > 24
    assert {path for path in tmp_path.iterdir() if path.is_dir()} == {home, location(spark)}
    assert [path.name for path in home.rglob("*") if path.is_file()] == ["theirs.parquet"]
    assert read_there(spark) == ids(spark.table("switched")) == [*ALL, 1000, 1001, 2000]


REFUSED = {
    "managed": ("DROP TABLE switched; CREATE TABLE switched (id BIGINT) USING parquet", "managed"),
    "by path": (
        "ALTER TABLE switched SET TBLPROPERTIES ('zorder.readers.byPath' = 'true')",
        "path",
    ),
    "two tables": (
        "CREATE TABLE switched_too (id BIGINT) USING parquet LOCATION '{}/t'",
        "switched_too` also stores files in the folder of",
    ),
    "partition": (
        "ALTER TABLE switched SET LOCATION '{}/t/day=1'",
        "no folder can be created next to it",
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
    spark.sql("DROP TABLE IF EXISTS switched_too")


def test_another_table_in_the_old_folder(spark: SparkSession, tmp_path: Path) -> None:
    """If another table is created in the old folder, that table's rows are neither copied to the
    new folder nor deleted."""
    home = make(spark, tmp_path)
    optimize(spark)
    spark.sql(f"CREATE TABLE switched2 (id BIGINT, other BIGINT) USING parquet LOCATION '{home}'")
    try:
        spark.sql("INSERT INTO switched2 VALUES (1000, 1)")
        with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
            assert spark.sql("VACUUM switched RETAIN 0 HOURS").collect() == []
        spark.catalog.refreshTable("switched2")
        assert ids(spark.table("switched2")) == [*ALL, 1000]
        assert read_there(spark) == ids(spark.table("switched")) == ALL
    finally:
        spark.sql("DROP TABLE switched2")


def test_path_refused(spark: SparkSession, tmp_path: Path) -> None:
    """OPTIMIZE fails if a path is given instead of a table name, because a path does not identify
    the catalog table whose location is to be switched. After a switch, a statement on the old
    folder also fails, because the table is no longer there."""
    home = make(spark, tmp_path)
    with (
        pytest.raises(PySparkException, match="ZORDER_CANNOT_SWITCH_LOCATION.*names the table"),
        scans.settings(spark, spark__sql__zorder__publish__method="location"),
    ):
        spark.sql(f"OPTIMIZE '{home}' ZORDER BY (id)").collect()
    optimize(spark)
    with pytest.raises(PySparkException, match="ZORDER_TABLE_MOVED"):
        spark.sql(f"OPTIMIZE '{home}' FULL ZORDER BY (id)").collect()


def test_others_read(spark: SparkSession, tmp_path: Path) -> None:
    """Readers always see all rows, even if the location is switched repeatedly."""
    make(spark, tmp_path)
    wrong: list[object] = []
    seen: set[Path] = set()
    ended = threading.Event()

    def reading(read: Callable[[], list[int]]) -> None:
        while not ended.is_set():
            try:
                seen.add(location(spark))
                if (found := read()) != ALL:
                    wrong.append(len(found))
            except Exception as failure:
                wrong.append(failure)

    plain = spark.newSession()
    plain.conf.set("spark.sql.zorder.skipping.enabled", "false")
    plain.conf.set("spark.sql.zorder.journal.overlay", "false")

    def refreshed() -> list[int]:
        plain.catalog.refreshTable("switched")
        return ids(plain.table("switched"))

    reads = (lambda: read_there(spark), refreshed, lambda: ids(spark.table("switched")))
    readers = [threading.Thread(target=reading, args=[read]) for read in reads]
    for reader in readers:
        reader.start()
    for _ in range(4):
        optimize(spark, "FULL ZORDER BY (id, other)")
    ended.set()
    for reader in readers:
        reader.join()
    assert wrong == [] and len(seen) >= 3


def test_others_append(spark: SparkSession, tmp_path: Path) -> None:
    """Rows that other writers append during OPTIMIZE are neither lost nor duplicated, even if they
    are written to a folder that has just been replaced."""
    make(spark, tmp_path)
    ended = threading.Event()
    appended: list[int] = []

    def append() -> None:
        while not ended.is_set():
            row = 1000 + len(appended)
            schema = pyarrow.schema([("id", pyarrow.int64()), ("other", pyarrow.int64())])
            file = location(spark) / f"_by-hand-{row}.parquet"
            pyarrow.parquet.write_table(
                pyarrow.table({"id": [row], "other": [row]}, schema=schema), file
            )
            file.rename(file.with_name(file.name[1:]))
            appended.append(row)
            ended.wait(0.1)

    writer = threading.Thread(target=append)
    writer.start()
    for _ in range(3):
        optimize(spark, "FULL ZORDER BY (id, other)")
    ended.set()
    writer.join()
    spark.sql("VACUUM switched")
    assert len(appended) > 5
    assert read_there(spark) == ids(spark.table("switched")) == [*ALL, *appended]
    assert ids(bound(fresh(spark), "1h").table("switched")) == [*ALL, *appended]


@pytest.mark.skipif(pyspark.__version__ < "4", reason="no rule runs early enough in Spark 3.5")
def test_session_that_has_used_the_table(spark: SparkSession, tmp_path: Path) -> None:
    """A session that has used the table before sees the new location, although Spark itself caches
    a table's location in each session."""
    make(spark, tmp_path)
    writer, reader, overwriter = (spark.newSession() for _ in range(3))
    for session in (writer, reader, overwriter):
        assert ids(session.table("switched")) == ALL
    optimize(spark)
    writer.sql("INSERT INTO switched VALUES (1000, 1)")
    assert read_there(spark) == ids(reader.table("switched")) == [*ALL, 1000]
    optimize(spark, "FULL ZORDER BY (id)")
    reader.sql("CREATE TEMPORARY VIEW seen AS SELECT * FROM switched")
    assert ids(reader.table("seen")) == [*ALL, 1000]
    optimize(spark, "FULL ZORDER BY (id)")
    writer.range(1001, 1002).selectExpr("id", "1").write.insertInto("switched")
    assert read_there(spark) == ids(reader.table("seen")) == [*ALL, 1000, 1001]
    overwriter.sql("INSERT OVERWRITE switched SELECT 1L, 1")
    assert read_there(spark) == ids(overwriter.table("switched")) == [1]


def test_rows_written_to_the_old_folder(spark: SparkSession, tmp_path: Path) -> None:
    """Rows that another session writes to the old folder are copied to the new folder exactly once.
    Later statements in the other session use the new location."""
    make(spark, tmp_path)
    other = spark.newSession()
    old = location(spark)
    optimize(spark)
    other.sql("SELECT 1000L id, 1L other").write.mode("append").parquet(str(old))
    spark.sql("VACUUM switched")
    assert read_there(spark) == ids(spark.table("switched")) == [*ALL, 1000]
    spark.sql("VACUUM switched")
    assert read_there(spark) == [*ALL, 1000]
    other.sql("OPTIMIZE switched FULL ZORDER BY (id)")
    assert read_there(spark) == ids(other.table("switched")) == [*ALL, 1000]


#: For each fail point, whether the next writer switches the table after a kill at this point.
POINTS = {
    "after-prepare": False,
    "switch-recorded": False,
    "mid-move-in": False,
    "switch-filled": False,
    "switch-committed": True,
    "before-switch": True,
}


def declare(home: Path) -> str:
    return (
        f"CREATE TABLE switched (id BIGINT, other BIGINT) USING parquet LOCATION '{home}' "
        f"TBLPROPERTIES ({BY_LOCATION})"
    )


def killed_at(spark: SparkSession, home: Path, point: str) -> None:
    """Kills a process at a fail point. The process has its own catalog, so the table in this
    session's catalog is not switched."""
    killed(home, point, f"{declare(home)}; OPTIMIZE switched ZORDER BY (id, other)")
    assert location(spark) == home
    with reads("before", point):
        assert read_there(spark) == ids(spark.table("switched")) == ALL


@pytest.mark.crash
@pytest.mark.parametrize("point", POINTS)
def test_killed(spark: SparkSession, tmp_path: Path, point: str) -> None:
    home = make(spark, tmp_path)
    killed_at(spark, home, point)
    killed(home, "recovery-decided", f"{declare(home)}; VACUUM switched")
    with reads("during", point):
        assert read_there(spark) == ids(spark.table("switched")) == ALL
    spark.sql("VACUUM switched")  # the next writer recovers
    assert (location(spark) != home) == POINTS[point]
    with reads("after", point):
        assert read_there(spark) == ids(spark.table("switched")) == ALL
    assert len([p for p in tmp_path.iterdir() if p.is_dir()]) == (2 if POINTS[point] else 1)
    optimize(spark, "FULL ZORDER BY (id)")
    assert read_there(spark) == ids(spark.table("switched")) == ALL


#: Changes to the folder between COMMIT and the switch, and the ids in the table afterwards.
MEANWHILE: dict[str, tuple[str, list[int]]] = {
    "append": ("INSERT INTO switched VALUES (1000, 1)", [*ALL, 1000]),
    "overwrite": ("INSERT OVERWRITE switched VALUES (1000, 1)", [1000]),
    "overwrite as Hive does": ("", [1000]),
}


@pytest.mark.parametrize("case", crash(MEANWHILE, "append"))
def test_changed_meanwhile(spark: SparkSession, tmp_path: Path, case: str) -> None:
    home = make(spark, tmp_path)
    killed_at(spark, home, "switch-committed")
    statement, expected = MEANWHILE[case]
    if statement:
        spark.sql(statement)
    else:
        for path in data_files(home):
            path.unlink()
        spark.range(1000, 1001).selectExpr("id", "id AS other").write.mode("append").parquet(
            str(home)
        )
    for _ in range(2):
        spark.sql("VACUUM switched")
        spark.sql("REFRESH TABLE switched")
        with reads("after", "switch-committed"):
            assert read_there(spark) == ids(spark.table("switched")) == expected
    assert (location(spark) == home) == (case != "append")


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_overwritten_behind(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """If the old folder is overwritten after the switch, the next write command reports an
    error."""
    home = make(spark, tmp_path)
    optimize(spark)
    for path in data_files(home) if mode == "append" else []:  # Hive does not delete `_zorder`
        path.unlink()
    spark.range(3).selectExpr("id", "id AS other").write.mode(mode).parquet(str(home))
    for statement in ("VACUUM switched", "RESTORE switched TO BEFORE OPTIMIZE"):
        with pytest.raises(PySparkException, match="ZORDER_OVERWRITTEN_BEHIND"):
            spark.sql(statement).collect()
    assert read_there(spark) == ALL


#: For each fail point, whether the metastore has the new location after the kill and after
#: recovery.
IN_METASTORE = {
    "switch-recorded": (False, False),
    "switch-filled": (False, False),
    "switch-committed": (False, True),
    "before-switch": (False, True),
    "after-switch": (True, True),
}


@pytest.mark.crash
@pytest.mark.parametrize("table", ["USING parquet", "STORED AS PARQUET"])
@pytest.mark.parametrize("point", IN_METASTORE)
def test_killed_in_metastore(spark: SparkSession, tmp_path: Path, point: str, table: str) -> None:
    """Spark without pyzorder sees each row once, both after a kill and after the next writer has
    run."""
    home = tmp_path / "t"
    spark.range(0, 400, 1, 8).write.parquet(str(home))
    external = "EXTERNAL " if "STORED" in table else ""
    hive_session.run(
        tmp_path,
        "t",
        f"CREATE {external}TABLE t (id BIGINT) {table} LOCATION '{home}' "
        f"TBLPROPERTIES ({BY_LOCATION})",
        "OPTIMIZE t ZORDER BY (id)",
        killed_at=point,
    )
    for writer, switched in zip((None, "VACUUM t"), IN_METASTORE[point], strict=True):
        if writer:
            assert hive_session.run(tmp_path, "t", writer)[0] == ALL
        found, place = hive_session.run(tmp_path, "t", plain=True)
        assert found == ALL
        assert (place != home) == switched
