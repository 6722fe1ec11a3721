"""Concurrent writers to a folder on a store share one lock, and lose neither index entries nor
rows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from tests.stores.tables import ALL, Table
from tests.support.folders import Folder
from tests.support.processes import journal_driver
from tests.support.processes.journal_driver import Rewrite, package

pytestmark = pytest.mark.stores

THREADS = 8
RACES = 12


def at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Calls `work` with 0, 1, … in parallel, and returns the results."""
    begin = Barrier(count)

    def one(number: int) -> Any:
        begin.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_one_winner(folder: Folder) -> None:
    """If many threads create the same file at the same time, exactly one of them succeeds, and the
    file has the content that the successful thread wrote."""
    folder.write("other", b"")
    primitive = getattr(getattr(package(folder.spark), "CreateIfAbsent$"), "MODULE$")
    for race in range(RACES):
        file = folder.path(f"race-{race}")
        make = primitive.of(folder.conf, file).create
        told = at_once(THREADS, lambda n, f=file, m=make: m(f, bytearray(b"%d" % n)))  # type: ignore[misc]
        winner = told.index(True)
        assert told.count(True) == 1, (race, told)
        assert folder.read(f"race-{race}") == b"%d" % winner
        assert not make(file, bytearray(b"late"))
    assert [n for n in folder.everything() if "temporary" in n] == []


def test_the_lock_keeps_another_process_out(folder: Folder) -> None:
    table = Table(folder)
    run = Rewrite(folder.spark, folder.url)
    statement = f"OPTIMIZE {table.name} ZORDER BY (id)"
    command = [sys.executable, journal_driver.__file__, folder.url, "", statement]
    path = {"PYTHONPATH": str(Path(__file__).parents[2])}
    other = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env={**os.environ, **path}
    )
    assert "ZORDER_CONCURRENT_OPTIMIZE" in other.stderr, other.stderr[-2000:]
    run.publish()
    assert table.ids() == ALL
    assert table.optimize()["numFilesAdded"] > 0


def test_two_optimize_at_once(folder: Folder) -> None:
    table = Table(folder)

    def optimize(_: int) -> str:
        try:
            table.run("OPTIMIZE {} FULL ZORDER BY (id)")
            return "done"
        except Exception as failure:
            assert "ZORDER_CON" in str(failure), failure  # either CONCURRENT_OPTIMIZE or CONFLICT
            return "refused"

    assert "done" in at_once(2, optimize)
    assert table.ids() == table.plain_ids() == ALL
    assert folder.pyzorder_files(".staged") == []


def test_entries_of_all_who_write_at_once(folder: Folder) -> None:
    """If several writers publish index snapshots at the same time, each writer keeps the entries
    that the other writers have already published."""
    table = Table(folder, partitioned=True)
    table.run("CREATE SKIPPING INDEX ON {}")
    at_once(4, lambda n: table.write_partitions(folder.spark.sql(f"SELECT 10{n}L id, 10{n}L day")))
    assert table.ids() == [*ALL, 100, 101, 102, 103]
    assert table.unindexed() == 0
    assert len(table.opened("id = 102")) == 1


# ---- concurrent changes by others ---------------------------------------------------------------


def overwrite(table: Table) -> list[int]:
    table.write(table.spark.range(100, 104).selectExpr("id", "id % 2 AS day"), "overwrite")
    return [100, 101, 102, 103]


def overwrite_a_partition(table: Table) -> list[int]:
    table.write_partitions(table.spark.range(101, 105, 2).selectExpr("id", "id % 2 AS day"))
    return [*range(0, 40, 2), 101, 103]


def delete_a_file(table: Table) -> list[int]:
    name = table.files[0]
    gone = table.spark.read.parquet(f"{table.folder.url}/{name}")
    left = set(ALL) - {row["id"] for row in gone.collect()}
    table.folder.remove(name)
    return sorted(left)


def rewrite_a_file(table: Table) -> list[int]:
    """Rewrites a file with the same bytes. S3A caches the metadata of objects that it has read, so
    it could miss a rewrite in place."""
    name = table.files[0]
    table.folder.write(name, table.folder.read(name))
    return ALL


@pytest.mark.parametrize(
    "change", [overwrite, overwrite_a_partition, delete_a_file, rewrite_a_file]
)
def test_a_conflict_leaves_the_table_as_the_other_left_it(
    folder: Folder, change: Callable[[Table], list[int]]
) -> None:
    table = Table(folder, partitioned=True)
    run = Rewrite(folder.spark, folder.url)
    expected = change(table)
    left = folder.data()
    with pytest.raises(Exception) as failure:
        run.publish()
    assert "ZORDER_CONFLICT" in str(failure.value)
    assert folder.data() == left
    assert table.ids() == table.plain_ids() == expected
    table.optimize()
    assert table.ids() == table.plain_ids() == expected


@pytest.mark.parametrize(
    ("point", "change"),
    [
        ("after-retire", overwrite_a_partition),
        ("before-commit", overwrite),
        ("after-commit", overwrite),
        ("mid-move-in", overwrite_a_partition),
    ],
)
def test_overwritten_rows_do_not_come_back(
    folder: Folder, point: str, change: Callable[[Table], list[int]]
) -> None:
    """If another writer overwrites the files that a killed run was about to replace, recovery does
    not bring back the rows of these files."""
    table = Table(folder, partitioned=True)
    journal_driver.killed(folder.url, point, f"OPTIMIZE {table.name} FULL ZORDER BY (id)")
    expected = change(table)
    assert table.ids() == expected
    table.run("VACUUM {}")
    assert table.ids() == table.plain_ids() == expected


def test_files_appended_meanwhile_are_kept(folder: Folder) -> None:
    table = Table(folder)
    run = Rewrite(folder.spark, folder.url)
    table.append(40, 44)
    run.publish()
    assert table.ids() == table.plain_ids() == list(range(44))


def test_nothing_is_left_where_a_table_was_deleted(folder: Folder) -> None:
    """If the table's folder is deleted, a writer that is still running does not recreate it."""
    Table(folder)
    run = Rewrite(folder.spark, folder.url)
    folder.delete()
    with pytest.raises(Exception, match="ZORDER_CONFLICT"):
        run.publish()
    assert folder.everything() == {}
