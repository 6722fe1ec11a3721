"""If an OPTIMIZE that switches partitions is killed and the next writer is also killed, each row
still exists exactly once, even for readers without pyzorder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.partitioned_table import (
    ALL,
    BY_LOCATION,
    declare,
    make,
    optimize,
    places,
    read_there,
)
from tests.support.processes import hive_session
from tests.support.processes.journal_driver import killed
from tests.support.processes.kill_matrix import reads
from tests.support.sampled import crash
from tests.support.tables import ids

pytestmark = pytest.mark.usefixtures("parted")

#: For each fail point, whether the next writer switches the partitions after a kill at this point.
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
    """Kills a process at a fail point. The process has its own catalog, so the partitions in this
    session's catalog are not switched."""
    before = places(spark)
    killed(home, point, "; ".join([*declare(home), "OPTIMIZE parted ZORDER BY (id, other)"]))
    assert places(spark) == before
    with reads("before", point):
        assert read_there(spark) == ids(spark.table("parted")) == ALL


@pytest.mark.crash
@pytest.mark.parametrize("point", POINTS)
def test_killed(spark: SparkSession, tmp_path: Path, point: str) -> None:
    home = make(spark, tmp_path)
    before = places(spark)
    killed_at(spark, home, point)
    killed(home, "recovery-decided", "; ".join([*declare(home), "VACUUM parted"]))
    with reads("during", point):
        assert read_there(spark) == ids(spark.table("parted")) == ALL
    spark.sql("VACUUM parted")  # the next writer recovers
    moved = {day for day, place in places(spark).items() if place != before[day]}
    assert moved == (set(before) if POINTS[point] else set())
    with reads("after", point):
        assert read_there(spark) == ids(spark.table("parted")) == ALL
    assert POINTS[point] or {p.name for p in tmp_path.iterdir()} == {"t", "elsewhere"}
    optimize(spark, "FULL ZORDER BY (id)")
    assert read_there(spark) == ids(spark.table("parted")) == ALL


#: Changes between COMMIT and the switch: (statement, a function that returns whether an id remains,
#: partitions that are not switched).
MEANWHILE: dict[str, tuple[str, Callable[[int], bool], set[str]]] = {
    "append": ("INSERT INTO parted VALUES (1000, 1, '1')", lambda id: True, set()),
    "overwrite": (
        "INSERT OVERWRITE parted PARTITION (day = '1') VALUES (1000, 1)",
        lambda id: id % 4 != 0,
        {"1"},
    ),
    "drop": ("ALTER TABLE parted DROP PARTITION (day = '1')", lambda id: id % 4 != 0, set()),
}


@pytest.mark.parametrize("case", crash(MEANWHILE))
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


#: For each fail point, whether the metastore has the new locations after the kill and after
#: recovery.
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
    """Spark without pyzorder sees each row once, both after a kill and after the next writer has
    run."""
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


@pytest.mark.crash
@pytest.mark.parametrize("table", TABLES, ids=["Spark's", "Hive's"])
def test_a_metastore_remembers_a_place_elsewhere(
    spark: SparkSession, tmp_path: Path, table: str
) -> None:
    """RESTORE and VACUUM find a partition's old location even if this location was outside the
    table's folder."""
    home, elsewhere = tmp_path / "t", tmp_path / "elsewhere"
    rows = spark.range(0, 400, 1, 4).selectExpr("id", "id % 2 AS day")
    rows.write.partitionBy("day").parquet(str(home))
    (home / "day=1").rename(elsewhere)
    found, place = hive_session.run(
        tmp_path,
        "t",
        f"CREATE {table} LOCATION '{home}' {BY_LOCATION}",
        "ALTER TABLE t ADD PARTITION (day = 0)",
        f"ALTER TABLE t ADD PARTITION (day = 1) LOCATION '{elsewhere}'",
        "OPTIMIZE t ZORDER BY (id)",
        partition="day = 1",
    )
    assert found == ALL
    assert place != elsewhere
    found, _ = hive_session.run(tmp_path, "t", "RESTORE t TO BEFORE OPTIMIZE")
    assert found == ALL
    found, _ = hive_session.run(
        tmp_path, "t",
        "SET spark.sql.zorder.vacuum.retentionCheck = false",
        "VACUUM t RETAIN 0 HOURS",
    )  # fmt: skip
    assert found == ALL
    assert not list(elsewhere.glob("*.parquet"))
