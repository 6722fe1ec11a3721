"""If a run is killed by SIGKILL at any step, each row exists exactly once, both before and after
the next writer runs.

Other tests stop a writer with SIGSTOP, declare it dead, and resume it after another writer has
taken over.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support import scans
from tests.support.engine_tables import ids_by_engines
from tests.support.processes.journal_driver import Rewrite, killed, paused, read, through_journal
from tests.support.processes.kill_matrix import reads
from tests.support.sampled import crash
from tests.support.tables import data_files, ids

ALL = list(range(40))

# For each fail point, the records that the run has written when it reaches this point.
POINTS = {
    "after-prepare": ["prepare"],
    "after-verify": ["prepare"],
    "after-markers": ["prepare"],
    "after-index": ["prepare"],
    "after-retire": ["prepare", "retire"],
    "mid-retire": ["prepare", "retire"],
    "before-commit": ["prepare", "retire"],
    "after-commit": ["outcome", "prepare", "retire"],
    "mid-move-in": ["outcome", "prepare", "retire"],
    "moved-in": ["outcome", "prepare", "retire"],
    "before-done": ["outcome", "prepare", "retire"],
    "after-done": ["done", "outcome", "prepare", "retire"],
}

#: The fail points that `make test` uses. `make test-crash` uses all of them.
SAMPLE = ("mid-retire", "after-commit")


@pytest.mark.parametrize("point", crash(POINTS, *SAMPLE))
def test_killed_at(spark: SparkSession, tmp_path: Path, point: str) -> None:
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).selectExpr("id", "id % 2 as day").write.partitionBy("day").parquet(
        str(table)
    )
    planned = read(spark, table)
    planned._jdf.queryExecution().executedPlan()
    made = spark.read.parquet(str(table))
    old = data_files(table)

    killed(table, point)
    records = [p.suffix[1:] for p in sorted((table / "_zorder" / "_journal").glob("_1.*"))]
    assert [r for r in records if r != "lease"] == POINTS[point]
    committed = "outcome" in records

    with reads("before", point):
        assert ids(read(spark, table)) == ALL
        assert ids(through_journal(spark, made)) == ALL
        assert ids(planned) == ALL
        assert ids_by_engines(table) == [ALL] * 3
    seen = {Path(name).name for name in read(spark, table).inputFiles()}
    assert (seen == {path.name for path in old}) == (not committed)

    Rewrite(spark, table).writer.abort()  # the next writer recovers when it begins

    with reads("after", point):
        assert ids(read(spark, table)) == ALL
        assert ids(spark.read.parquet(str(table))) == ALL
        assert ids(planned) == ALL
        assert ids_by_engines(table) == [ALL] * 3
    assert (data_files(table) == old) == (not committed)
    assert not list(table.rglob("*.staged"))
    assert not list(table.rglob("_zorder.*"))


#: The fail points of a recovery. A recovery undoes a run that was killed before COMMIT, and
#: completes a run that was killed after COMMIT.
UNDOING = ("recovery-decided", "recovery-undoing", "recovery-moved")
COMPLETING = ("recovery-decided", "recovery-completing", "recovery-moved")
TWICE = [
    (first, second)
    for first, records in POINTS.items()
    if "done" not in records
    for second in [
        *(COMPLETING if "outcome" in records else UNDOING if "retire" in records else UNDOING[::2]),
        *POINTS,
    ]
]


@pytest.mark.crash
@pytest.mark.parametrize(("first", "second"), TWICE)
def test_killed_twice(spark: SparkSession, tmp_path: Path, first: str, second: str) -> None:
    """Each row exists exactly once even if a second process is also killed, either while it
    recovers from the first kill or afterwards."""
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).write.parquet(str(table))
    spark.sql(f"CREATE SKIPPING INDEX ON '{table}'")
    frame = spark.read.parquet(str(table))
    for point in (first, second):
        several = "spark.sql.zorder.optimize.targetFileSize=400"
        killed(table, point, f"OPTIMIZE '{table}' FULL ZORDER BY (id)", several)
        recovers = point in (*UNDOING, *COMPLETING)
        with reads("before", point), reads("during", *([first] if recovers else [])):
            assert ids(through_journal(spark, frame)) == ALL
            some = spark.read.schema("id BIGINT").parquet(str(table)).where("id > 7")
            assert ids(some) == ALL[8:]
    spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (id)")
    with reads("after", first, second):
        assert ids(frame) == ALL
        with scans.settings(spark, spark__sql__zorder__journal__overlay="false"):
            assert ids(spark.read.parquet(str(table))) == ALL
    assert not list(table.rglob("*.staged"))


@pytest.mark.parametrize(
    ("statement", "point"),
    [
        ("RESTORE '{}' TO BEFORE OPTIMIZE", "mid-move-in"),
        *(
            pytest.param(statement, point, marks=pytest.mark.crash)
            for statement, points in {
                "VACUUM '{}' RETAIN 0 HOURS": ["after-prepare", "vacuum-found", "mid-vacuum"],
                "RESTORE '{}' TO BEFORE OPTIMIZE": [p for p in POINTS if p != "mid-move-in"],
            }.items()
            for point in points
        ),
    ],
)
def test_statements_killed(spark: SparkSession, tmp_path: Path, statement: str, point: str) -> None:
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).write.parquet(str(table))
    old = data_files(table)
    frame = spark.read.parquet(str(table))
    with scans.settings(spark, spark__sql__zorder__optimize__targetFileSize="400"):
        spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    new = data_files(table)
    killed(table, point, statement.format(table))
    with reads("before", point):
        assert ids(through_journal(spark, frame)) == ALL
    if point != "after-done":
        killed(table, "recovery-decided", f"VACUUM '{table}'")
        with reads("during", point):
            assert ids(through_journal(spark, frame)) == ALL
    spark.sql(f"VACUUM '{table}'")  # the next writer recovers
    with reads("after", point):
        assert ids(frame) == ALL
        with scans.settings(spark, spark__sql__zorder__journal__overlay="false"):
            assert ids(spark.read.parquet(str(table))) == ALL
    restored = "RESTORE" in statement and "outcome" in POINTS[point]
    assert data_files(table) == (old if restored else new)


#: What another writer does after it has taken over the lock of a stopped writer.
OTHERS: dict[str, Callable[[SparkSession, Path], object]] = {
    "gives up": lambda spark, table: Rewrite(spark, table).writer.abort(),
    "goes on": lambda spark, table: spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (id)"),
}


def create(spark: SparkSession, table: Path) -> DataFrame:
    """Creates a table with two partitions and an index. Returns a DataFrame that reads the
    table."""
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "id % 2 AS day")
    rows.write.partitionBy("day").parquet(str(table))
    spark.sql(f"CREATE SKIPPING INDEX ON '{table}'")
    return spark.read.parquet(str(table))


def check(spark: SparkSession, table: Path, frame: DataFrame) -> None:
    """Asserts that all readers see each row once, and that no files of an unfinished run are
    left."""
    assert ids(frame) == ids(spark.read.parquet(str(table))) == ALL
    with scans.settings(spark, spark__sql__zorder__journal__overlay="false"):
        assert ids(spark.read.parquet(str(table))) == ALL
    assert not list(table.rglob("*.staged"))
    assert not list(table.rglob("_zorder.*"))


@pytest.mark.crash
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("point", POINTS)
def test_declared_dead_at(spark: SparkSession, tmp_path: Path, point: str, other: str) -> None:
    """A stopped writer can no longer change anything after another process has taken over its
    lock."""
    table = tmp_path / "t"
    frame = create(spark, table)
    with paused(table, point, f"OPTIMIZE '{table}' FULL ZORDER BY (id)") as writer:
        assert ids(frame) == ALL
        with scans.settings(spark, spark__sql__zorder__journal__takeOver="1"):
            OTHERS[other](spark, table)
        check(spark, table, frame)
        files = data_files(table)
    assert writer.succeeded == ("outcome" in POINTS[point]), writer.said
    assert writer.succeeded or "ZORDER_CONFLICT" in writer.said, writer.said
    assert data_files(table) == files
    check(spark, table, frame)
    spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (id)")
    check(spark, table, frame)


@pytest.mark.crash
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(
    ("first", "point"),
    [
        *(("mid-retire", point) for point in UNDOING),
        *(("after-commit", point) for point in COMPLETING),
    ],
)
def test_two_recover(
    spark: SparkSession, tmp_path: Path, first: str, point: str, other: str
) -> None:
    """Two processes can recover a table at the same time after its writer was killed. In this test,
    the first process is stopped until the second has finished."""
    table = tmp_path / "t"
    frame = create(spark, table)
    killed(table, first, f"OPTIMIZE '{table}' FULL ZORDER BY (id)")
    with paused(table, point, f"VACUUM '{table}'") as recovery:
        with reads("during", first):
            assert ids(frame) == ids(spark.read.parquet(str(table))) == ALL
        OTHERS[other](spark, table)
        check(spark, table, frame)
        files = data_files(table)
    assert recovery.succeeded, recovery.said
    assert data_files(table) == files
    with reads("after", first):
        check(spark, table, frame)


@pytest.mark.crash
@pytest.mark.parametrize("point", ["mid-retire", "mid-move-in", "before-done"])
def test_a_first_record_that_is_deleted(spark: SparkSession, tmp_path: Path, point: str) -> None:
    """If a run's first record is deleted by mistake while the table still exists, no row is lost
    when another writer cleans up."""
    table = tmp_path / "t"
    frame = create(spark, table)
    several = "spark.sql.zorder.optimize.targetFileSize=400"
    with paused(table, point, f"OPTIMIZE '{table}' FULL ZORDER BY (id)", several):
        (table / "_zorder" / "_journal" / "_1.prepare").unlink()
    assert ids(through_journal(spark, frame)) == ALL
    spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (id)")
    check(spark, table, frame)


@pytest.mark.crash
def test_a_writer_that_wakes_up_in_another_incarnation(spark: SparkSession, tmp_path: Path) -> None:
    """If `_zorder` is deleted while a writer is stopped, the writer does not undo its run, because
    the run's new files are then the only copy of the rows."""
    table = tmp_path / "t"
    create(spark, table)
    lease = "spark.sql.zorder.journal.lease=4000"
    with paused(table, "after-done", f"OPTIMIZE '{table}' FULL ZORDER BY (id)", lease):
        shutil.rmtree(table / "_zorder")
        time.sleep(5)
    assert ids(spark.read.parquet(str(table))) == ALL


@pytest.mark.crash
def test_declared_dead_before_it_moves_files(spark: SparkSession, tmp_path: Path) -> None:
    """A writer that was declared dead writes RETIRE after another process has begun to recover the
    writer's run. The other process undoes the run, although there was no RETIRE when it took over
    the lock. Each row still exists exactly once."""
    table = tmp_path / "t"
    frame = create(spark, table)
    takes = "spark.sql.zorder.journal.takeOver=1"
    with paused(
        table, "after-index,mid-retire", f"OPTIMIZE '{table}' FULL ZORDER BY (id)"
    ) as writer:
        with paused(table, "recovery-begun", f"VACUUM '{table}'", takes) as recovery:
            writer.go_on()
        assert recovery.succeeded, recovery.said
        assert ids(frame) == ids(spark.read.parquet(str(table))) == ALL
    assert "ZORDER_CONFLICT" in writer.said, writer.said
    check(spark, table, frame)
