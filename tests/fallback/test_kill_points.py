"""SIGKILL at every boundary of a run: each row once for readers with the jar, and after the next
writer, whichever of the two it is, for all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pyzorder import fallback
from pyzorder.errors import ZOrderError
from pyzorder.fallback.run_settings import RunSettings
from pyzorder.fallback.stores import TableFolder
from pyzorder.fallback.writer import Writer
from tests.fallback.rewrite_driver import rewrite, rewritten
from tests.spark import journal_driver, scans
from tests.spark.dying import dying, dying_but, emptied_behind, left_in_the_end
from tests.spark.journal_driver import Rewrite, read, through_journal
from tests.spark.tables import data_files, ids
from tests.spark.test_kill_points import ALL, COMPLETING, POINTS, UNDOING

#: Who is killed, and who comes next.
TURNS = [("fallback", "jar"), ("fallback", "fallback"), ("jar", "fallback")]

#: What `make test` kills at as well; `make test-fallback` takes all.
SAMPLE = [("mid-retire", "fallback", "fallback"), ("mid-move-in", "fallback", "jar")]

CASES = [(point, *turn) for point in POINTS for turn in TURNS]


@pytest.mark.parametrize(
    ("point", "killed", "writer"),
    [c if c in SAMPLE else pytest.param(*c, marks=pytest.mark.fallback) for c in CASES],
)
def test_killed_at(
    spark: SparkSession, tmp_path: Path, point: str, killed: str, writer: str
) -> None:
    table = tmp_path / "t"
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "id % 7 AS x", "id % 2 AS day")
    rows.write.partitionBy("day").parquet(str(table))
    planned = read(spark, table)
    planned._jdf.queryExecution().executedPlan()
    made = spark.read.parquet(str(table))
    old = data_files(table)

    own = killed == "fallback"
    (rewritten if own else journal_driver.killed)(table, point)
    records = [p.suffix[1:] for p in sorted((table / "_zorder" / "_journal").glob("_1.*"))]
    assert [r for r in records if r != "lease"] == POINTS[point]
    committed = "outcome" in records

    assert ids(read(spark, table)) == ALL
    assert ids(through_journal(spark, made)) == ALL
    assert ids(planned) == ALL
    if "retire" in records and "done" not in records:
        with pytest.raises(ZOrderError, match="ZORDER_FALLBACK_UNFINISHED"):
            fallback.read(spark, str(table)).where("id = 5")

    if writer == "jar":
        Rewrite(spark, table).writer.abort()
    else:
        assert fallback.recover(spark, str(table)) == ("done" not in records)
        fallback.vacuum(spark, str(table))

    assert ids(read(spark, table)) == ALL
    assert ids(spark.read.parquet(str(table))) == ALL
    assert (data_files(table) == old) == (not committed)
    assert ids(planned) == ALL
    assert fallback.read(spark, str(table)).where("id = 5").count() == 1
    assert not list(table.rglob("*.staged"))
    assert not list(table.rglob("_zorder.*"))


TWICE = [
    (first, second)
    for first, records in POINTS.items()
    if "done" not in records
    for second in [
        *(COMPLETING if "outcome" in records else UNDOING if "retire" in records else UNDOING[::2]),
        "mid-retire",
        "mid-move-in",
    ]
]


@pytest.mark.fallback
@pytest.mark.parametrize("first", sorted({first for first, _ in TWICE}))
def test_killed_twice(spark: SparkSession, tmp_path: Path, first: str) -> None:
    """The second while it recovers what the first left, or after that."""
    for second in [s for f, s in TWICE if f == first]:
        table = tmp_path / second
        rows = spark.range(0, 40, 1, 2).selectExpr("id", "id % 2 AS day")
        rows.write.partitionBy("day").parquet(str(table))
        frame = spark.read.parquet(str(table))
        for point in (first, second):
            rewritten(table, point)
            assert ids(through_journal(spark, frame)) == ALL, second
        rewritten(table)
        assert ids(frame) == ALL, second
        with scans.settings(spark, spark__sql__zorder__journal__overlay="false"):
            assert ids(spark.read.parquet(str(table))) == ALL, second
        assert not list(table.rglob("*.staged")) and not list(table.rglob("_zorder.*")), second


@pytest.mark.parametrize(
    "at", ["after-verify", "after-markers", "after-index", "after-retire", "mid-retire"]
)
def test_declared_dead(tmp_path: Path, at: str) -> None:
    """A writer that stands still while another command takes over from it, and then goes on."""

    class StandsStill(RunSettings):
        def reach(self, point: str) -> None:
            if point == at:
                folder = TableFolder(str(tmp_path))
                Writer.begin(folder, "OTHER", RunSettings(take_over="1")).abort()

    for number in range(8):
        file = tmp_path / f"day={number % 2}" / f"{number}.parquet"
        file.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"id": range(number * 5, number * 5 + 5)}), file)
    before = data_files(tmp_path)
    with pytest.raises(ZOrderError, match="ZORDER_CONFLICT"):
        rewrite(tmp_path, StandsStill())
    assert data_files(tmp_path) == before
    assert not list(tmp_path.rglob("*.staged")) and not list(tmp_path.rglob("_zorder.*"))


@pytest.mark.parametrize(
    ("outcome", "is_done", "refuses"),
    [(None, False, True), ("COMMIT", False, True), ("COMMIT", True, True), ("ABORT", True, False)],
)
def test_a_location_that_the_jar_switches(
    tmp_path: Path, outcome: str | None, is_done: bool, refuses: bool
) -> None:
    """Only the jar can finish that, and nobody may write into a folder that was left."""
    pq.write_table(pa.table({"id": range(5)}), tmp_path / "f.parquet")
    folder = TableFolder(str(tmp_path))
    Writer.begin(folder, "TEST", RunSettings()).abort()
    (done,) = (tmp_path / "_zorder" / "_journal").glob("_1.done")
    record = json.loads(done.read_text())
    records = {"prepare": json.loads(done.with_suffix(".prepare").read_text())}
    records["switch"] = {**record, "to": "t-zorder-00000000", "read": []}
    if outcome:
        records["outcome"] = {**record, "outcome": outcome, "by": "test"}
    if is_done:
        records["done"] = record
    for kind, said in records.items():
        done.with_name(f"_2.{kind}").write_text(json.dumps({**said, "record": kind}))
    if refuses:
        with pytest.raises(ZOrderError, match="switched the location"):
            Writer.begin(folder, "TEST", RunSettings(take_over="2"))
    else:
        Writer.begin(folder, "TEST", RunSettings()).abort()


def optimized(table: Path, point: str) -> int:
    """The end of a process of plain Spark that optimizes the table; -9: it was killed."""
    driver = Path(__file__).parent / "optimize_driver.py"
    child = subprocess.run(
        [sys.executable, str(driver), str(table), point],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(driver.parents[2])},
    )
    return child.returncode


@pytest.mark.fallback
@pytest.mark.parametrize("point", ["after-index", "mid-retire", "mid-move-in"])
def test_optimize_killed(spark: SparkSession, tmp_path: Path, point: str) -> None:
    table = tmp_path / "t"
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "id % 7 AS x", "id % 2 AS day")
    rows.write.partitionBy("day").parquet(str(table))
    assert optimized(table, point) == -9
    assert ids(read(spark, table)) == ALL
    assert optimized(table, "") == 0
    assert ids(spark.read.parquet(str(table))) == ALL
    assert len(data_files(table)) == 2
    assert not list(table.rglob("*.staged")) and not list(table.rglob("_zorder.*"))


@pytest.mark.fallback
@pytest.mark.parametrize("point", ["vacuum-found", "mid-vacuum"])
def test_vacuum_killed(spark: SparkSession, tmp_path: Path, point: str) -> None:
    """The next VACUUM deletes what is left."""
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).write.parquet(str(table))
    rewritten(table)
    script = f"""
import sys
from pyzorder.fallback.run_settings import RunSettings
from pyzorder.fallback.stores import TableFolder
from pyzorder.fallback.vacuum import delete
from pyzorder.fallback.writer import Writer
settings = RunSettings(kill_at={point!r})
delete(Writer.begin(TableFolder({str(table)!r}), "VACUUM", settings), 0, settings)
"""
    assert subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2],
                          check=False).returncode == -9  # fmt: skip
    assert ids(spark.read.parquet(str(table))) == ALL
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        deleted = fallback.vacuum(spark, str(table), 0)
    assert len(deleted) == (4 if point == "vacuum-found" else 3)
    assert not list((table / "_zorder" / "_retired").iterdir())
    assert ids(spark.read.parquet(str(table))) == ALL


@pytest.mark.parametrize("left", [["_journal"], ["_journal", "_index"], []], ids=str)
def test_a_writer_of_a_table_that_is_being_deleted(tmp_path: Path, left: list[str]) -> None:
    """It comes when the files are gone, and the folder and some old records are not yet."""
    pq.write_table(pa.table({"id": range(5)}), tmp_path / "f.parquet")
    rewrite(tmp_path, RunSettings())
    dying(tmp_path, left)
    (tmp_path / "_zorder" / "_journal" / "_1.done").unlink(missing_ok=True)
    Writer.begin(TableFolder(str(tmp_path)), "TEST", RunSettings()).abort()
    assert list(tmp_path.iterdir()) == []


def test_nothing_stays_in_a_dying_folder(spark: SparkSession, tmp_path: Path) -> None:
    """A table is dropped while it is being rewritten."""
    table = tmp_path / "t"
    spark.range(10).write.parquet(str(table))
    fallback.create_index(spark, str(table))
    writer = Writer.begin(TableFolder(str(table)), "TEST", RunSettings())
    dying(table, ["_journal", "_index"])
    writer.abort()
    assert list(table.iterdir()) == []


def test_no_record_stays_of_a_run_that_has_ended(tmp_path: Path) -> None:
    """The others are deleted when the writer has looked for them."""
    pq.write_table(pa.table({"id": range(5)}), tmp_path / "f.parquet")
    rewrite(tmp_path, RunSettings())
    dying_but(tmp_path, "_1.done")
    assert left_in_the_end(tmp_path) == []


def test_no_folder_stays_that_is_emptied_from_both_sides(tmp_path: Path) -> None:
    """A disk gives up a folder in which a record came, and takes its last file away after that."""
    pq.write_table(pa.table({"id": range(5)}), tmp_path / "f.parquet")
    rewrite(tmp_path, RunSettings())
    writer = Writer.begin(TableFolder(str(tmp_path)), "TEST", RunSettings())
    dying_but(tmp_path, "_2.prepare")
    other = emptied_behind(tmp_path)
    other.start()
    writer.abort()
    other.join(30)
    assert list(tmp_path.iterdir()) == []
