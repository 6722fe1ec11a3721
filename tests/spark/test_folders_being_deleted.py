"""pyzorder leaves nothing behind if a table's folder is deleted, renamed or overwritten while a
statement runs.

A file system deletes a folder file by file. The deletion fails if a new file appears in the
meantime.
"""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.test_kill_points import create
from tests.support import scans
from tests.support.folders_being_deleted import (
    delete_all_but,
    delete_all_but_record,
    deleter_behind,
    eventually_left,
)
from tests.support.processes.journal_driver import (
    Rewrite,
    hadoop_path,
    killed,
    package,
    paused,
)
from tests.support.tables import data_files, ids

ALL = list(range(40))


@pytest.mark.parametrize("new_life", [False, True])
def test_nothing_is_in_the_way_of_a_new_table(
    spark: SparkSession, tmp_path: Path, new_life: bool
) -> None:
    """If a table is deleted while it is being rewritten, the writer leaves nothing that would
    prevent the creation of a new table. The writer does not delete the records of a new table in
    the same folder."""
    table = tmp_path / "t"
    spark.range(40).write.parquet(str(table))
    spark.sql(f"CREATE SKIPPING INDEX ON '{table}'")
    run = Rewrite(spark, table)
    journal = table / "_zorder" / "_journal"
    [prepare] = journal.glob("*.prepare")
    delete_all_but(table, ["_journal", "_index"])
    if new_life:
        (table / "_zorder" / "_incarnation").write_text("another")
        (journal / "_1.outcome").write_text('{"record": "outcome", "incarnation": "another"}')
    with pytest.raises(Exception, match="ZORDER_CONFLICT"):
        run.publish()
    assert prepare.name == "_1.prepare" and not prepare.exists()
    names = {path.name for path in table.rglob("*")}
    assert names == ({"_zorder", "_incarnation", "_journal", "_1.outcome"} if new_life else set())


def test_a_writer_of_a_table_that_is_being_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """A writer leaves nothing behind if it starts after a table's data files have been deleted, but
    before the folder and some old records have been deleted."""
    table = tmp_path / "t"
    spark.range(40).write.parquet(str(table))
    Rewrite(spark, table).publish()
    delete_all_but(table, ["_journal"])
    (table / "_zorder" / "_journal" / "_1.done").unlink()
    begin = package(spark).Writer.begin
    begin(spark._jsparkSession, hadoop_path(spark, table), "TEST").abort()
    assert list(table.iterdir()) == []


@pytest.mark.crash
@pytest.mark.parametrize(
    ("point", "folder"),
    [("moved-in", "day=1"), ("moved-in", ""), ("before-done", ""), ("after-done", "")],
)
def test_deleted_file_by_file(spark: SparkSession, tmp_path: Path, point: str, folder: str) -> None:
    """A process that deletes a table may have listed the table's files before a writer adds new
    files. The writer then detects the deletion, and removes its new files from the folders that are
    being deleted."""
    table = tmp_path / "t"
    create(spark, table)
    with paused(table, point, f"OPTIMIZE '{table}' FULL ZORDER BY (id)") as writer:
        new = data_files(table)
        for path in sorted((table / folder).rglob("*"), reverse=True):
            if path.is_file() and path not in new:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()
    assert "ZORDER_CONFLICT" in writer.said, writer.said
    assert data_files(table) == [path for path in new if folder not in str(path)]


@pytest.mark.crash
def test_no_marker_stays_in_a_folder_being_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """A writer does not leave a marker behind if the rest of `_zorder` has been deleted, because a
    marker would prevent the creation of a new table."""
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).write.parquet(str(table))
    with paused(table, "after-verify", f"OPTIMIZE '{table}' FULL ZORDER BY (id)") as writer:
        shutil.rmtree(table / "_zorder")
    assert "ZORDER_CONFLICT" in writer.said, writer.said
    assert not list(table.glob("_zorder*"))


@pytest.mark.crash
def test_no_folder_stays_that_is_emptied_from_both_sides(
    spark: SparkSession, tmp_path: Path
) -> None:
    """If a table is deleted while a writer runs, the writer removes `_zorder`, even if its first
    attempt fails because the folder still contains a file that is deleted later."""
    table = tmp_path / "t"
    create(spark, table)
    with paused(table, "after-verify", f"OPTIMIZE '{table}' FULL ZORDER BY (id)") as writer:
        delete_all_but(table, ["_journal"])
        other = deleter_behind(table)
        other.start()
    other.join(30)
    assert "ZORDER_CONFLICT" in writer.said, writer.said
    assert not (table / "_zorder").exists()


def test_no_record_stays_in_a_folder_being_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """A writer removes its DONE record if all other records have been deleted. A process that
    deletes the table may have listed the records before DONE was written."""
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).write.parquet(str(table))
    with paused(table, "after-done", f"OPTIMIZE '{table}' FULL ZORDER BY (id)"):
        journal = table / "_zorder" / "_journal"
        for record in journal.iterdir():
            if not record.name.endswith(".done"):
                record.unlink()
    assert [path.name for path in (table / "_zorder").iterdir() if path.is_dir()] == ["_retired"]


def test_no_record_stays_of_a_run_that_has_ended(spark: SparkSession, tmp_path: Path) -> None:
    """A writer removes its DONE record even if the other records are deleted after the writer has
    checked whether they still exist."""
    table = tmp_path / "t"
    spark.range(0, 40, 1, 4).write.parquet(str(table))
    Rewrite(spark, table).publish()
    delete_all_but_record(table, "_1.done")
    assert eventually_left(table) == []


@pytest.mark.crash
def test_no_record_of_another_stays_in_a_folder_being_deleted(
    spark: SparkSession, tmp_path: Path
) -> None:
    """If a record of a killed run is deleted while another writer completes the run, none of the
    run's records remain, except possibly its lease."""
    table = tmp_path / "t"
    create(spark, table)
    killed(table, "after-retire", f"OPTIMIZE '{table}' FULL ZORDER BY (id)")
    with paused(table, "recovery-moved", f"VACUUM '{table}'"):
        (table / "_zorder" / "_journal" / "_1.prepare").unlink()
    left = {path.suffix for path in (table / "_zorder" / "_journal").glob("_1.*")}
    assert left <= {".lease"}
    assert ids(spark.read.parquet(str(table))) == ALL


@contextmanager
def optimizing(spark: SparkSession, table: Path) -> Iterator[Future[DataFrame]]:
    """Runs an OPTIMIZE that writes many files to a table. The block starts when the first file
    exists."""
    spark.range(0, 4000, 1, 4).write.parquet(str(table))
    with (
        scans.settings(spark, spark__sql__zorder__optimize__targetFileSize="400"),
        ThreadPoolExecutor() as pool,
    ):
        run = pool.submit(spark.sql, f"OPTIMIZE '{table}' ZORDER BY (id)")
        while not list(table.rglob("*.staged")):
            time.sleep(0.01)
        yield run


def test_nothing_stays_where_a_table_was(spark: SparkSession, tmp_path: Path) -> None:
    """If a table is renamed while OPTIMIZE writes, nothing remains at the old path after a few
    seconds."""
    table = tmp_path / "t"
    with optimizing(spark, table) as run:
        table.rename(tmp_path / "away")
        with pytest.raises(Exception, match="ZORDER_CONFLICT"):
            run.result()
    until = time.monotonic() + 10
    while table.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not table.exists(), list(table.rglob("*"))


def test_a_folder_that_another_has_just_made_is_left(spark: SparkSession, tmp_path: Path) -> None:
    """If an overwrite deletes and recreates the table's folder while OPTIMIZE writes, OPTIMIZE does
    not remove the new folder."""
    table = tmp_path / "t"
    with optimizing(spark, table) as run:
        while table.exists():
            shutil.rmtree(table, ignore_errors=True)
        table.mkdir()
        time.sleep(0.1)
        (table / "_temporary").mkdir()
        with pytest.raises(Exception, match="ZORDER_CONFLICT"):
            run.result()
    until = time.monotonic() + 10  # tasks may still be running
    while len(list(table.iterdir())) > 1 and time.monotonic() < until:
        time.sleep(0.1)
    assert list(table.iterdir()) == [table / "_temporary"]


def test_a_folder_stays_for_a_moment_where_a_table_was(spark: SparkSession, tmp_path: Path) -> None:
    """A writer does not immediately remove a folder that was just created. CREATE TABLE creates a
    folder and then sets its permissions, so the folder must not disappear in between."""
    table = tmp_path / "t"
    with optimizing(spark, table) as run:
        for _ in range(60):
            while table.exists():
                shutil.rmtree(table, ignore_errors=True)
            table.mkdir(exist_ok=True)
            time.sleep(0.05)
            assert table.exists()
        with pytest.raises(Exception, match="ZORDER_CONFLICT"):
            run.result()


@pytest.mark.parametrize("_again", range(3))
def test_a_new_table_without_rows_stays(spark: SparkSession, tmp_path: Path, _again: int) -> None:
    """The folder of a new table is not removed, even if it remains empty for several seconds."""
    table = tmp_path / "t"
    with optimizing(spark, table) as run:
        while table.exists():
            shutil.rmtree(table, ignore_errors=True)
            time.sleep(0.5)  # a task may recreate the folder and remove it again
        table.mkdir()
        with pytest.raises(Exception, match="ZORDER_CONFLICT"):
            run.result()
        time.sleep(3)
    assert list(table.parent.iterdir()) == [table]


def test_renamed_and_renamed_back(spark: SparkSession, tmp_path: Path) -> None:
    table, away = tmp_path / "t", tmp_path / "away"
    with optimizing(spark, table) as run:
        table.rename(away)
        time.sleep(0.2)
        if table.exists():  # a task has recreated the folder and will soon remove it
            shutil.rmtree(table)
        away.rename(table)
        with pytest.raises(Exception, match="ZORDER_CONFLICT"):
            run.result()
    assert ids(spark.read.parquet(str(table))) == list(range(4000))


def test_a_file_that_was_away_for_a_moment(spark: SparkSession, tmp_path: Path) -> None:
    """If a file in the table is briefly missing, OPTIMIZE reports a conflict. If a file
    outside the table is missing, OPTIMIZE reports Spark's original error."""
    table = tmp_path / "t"
    spark.range(40).write.parquet(str(table))
    jvm: Any = spark._jvm
    run = Rewrite(spark, table)
    exit_code = getattr(jvm.org.apache.hadoop.util, "Shell$ExitCodeException")
    for folder, told in ((table, "ZORDER_CONFLICT"), (tmp_path / "shuffle", "Job aborted")):
        for missing in (
            jvm.java.io.FileNotFoundException(f"File file:{folder}/part-0 does not exist"),
            exit_code(1, f"chmod: cannot access '{folder}/part-0': No such file or directory"),
        ):
            failure = jvm.java.lang.RuntimeException("Job aborted", missing)
            reason = run.writer.reason(failure)
            assert told in f"{reason.toString()} {reason.getCause()}"
    run.writer.abort()


def test_a_folder_that_is_gone_is_not_a_full_disk(spark: SparkSession, tmp_path: Path) -> None:
    """A missing folder is reported as a conflict and not as a full disk, although its free space is
    reported as 0 bytes."""
    table = tmp_path / "t"
    spark.range(40).write.parquet(str(table))
    run = Rewrite(spark, table)
    shutil.rmtree(table)
    with pytest.raises(Exception, match="ZORDER_CONFLICT"):
        run.writer.checkSpace(1)


@pytest.mark.parametrize(
    "statement", ["VACUUM '{}' DRY RUN", "OPTIMIZE '{}' ZORDER BY (id) DRY RUN"]
)
def test_a_folder_that_is_empty_for_a_moment(
    spark: SparkSession, tmp_path: Path, statement: str
) -> None:
    """A statement does not report files as damaged if they are only briefly missing, as they are
    during an overwrite."""
    folder = tmp_path / "t"
    spark.range(10).coalesce(1).write.parquet(str(folder))
    [file] = data_files(folder)
    said = said_while_away(spark, file, statement.format(folder), 100)
    assert not [text for text in said if not re.search("ZORDER_(NO_FILES|CONFLICT)", text)]


@pytest.mark.crash
def test_a_folder_that_is_away_for_a_moment(spark: SparkSession, tmp_path: Path) -> None:
    """If the table's folder is renamed and renamed back while another process holds the lock, a
    statement reports a conflict or a missing folder."""
    table = tmp_path / "t"
    create(spark, table)
    with paused(table, "after-prepare", f"OPTIMIZE '{table}' FULL ZORDER BY (id)"):
        said = said_while_away(spark, table, f"VACUUM '{table}'", 60)
    told = "ZORDER_(CONCURRENT_OPTIMIZE|CONFLICT|PATH_NOT_FOUND|NO_FILES)"
    assert said
    assert [text for text in said if not re.search(told, text)] == []


def said_while_away(spark: SparkSession, path: Path, statement: str, times: int) -> list[str]:
    """Runs a statement repeatedly while a file or folder keeps disappearing and reappearing.
    Returns the errors."""
    away = path.with_name("_away")
    ended = threading.Event()

    def come_and_go() -> None:
        while not ended.is_set():
            path.rename(away)
            ended.wait(0.001)
            away.rename(path)
            ended.wait(0.001)

    other = threading.Thread(target=come_and_go)
    other.start()
    said = []
    for _ in range(times):
        try:
            spark.sql(statement).collect()
        except (PySparkException, Py4JJavaError) as failure:
            said.append(str(failure))
    ended.set()
    other.join()
    return said
