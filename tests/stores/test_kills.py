"""If a process is killed while it changes a table on a store, another process recovers the
table."""

from __future__ import annotations

import pytest

from tests.stores.tables import ALL, Table
from tests.support.folders import Folder
from tests.support.processes.journal_driver import killed
from tests.support.sampled import crash
from tests.support.tables import ids

pytestmark = pytest.mark.stores

OPTIMIZE = "OPTIMIZE {} FULL ZORDER BY (id)"

#: For each point at which OPTIMIZE is killed, whether it has already committed.
POINTS = {
    "after-prepare": False,
    "after-markers": False,
    "after-index": False,
    "after-retire": False,
    "mid-retire": False,
    "before-commit": False,
    "after-commit": True,
    "mid-move-in": True,
    "before-done": True,
    "after-done": True,
}


#: The points that `make test-cluster` tests. That target skips tests marked as `crash`, whereas
#: `make test-hdfs` and `make test-s3` test all points.
SAMPLE = ("mid-retire", "before-commit", "mid-move-in", "before-done")


@pytest.mark.parametrize("point", crash(POINTS, *SAMPLE))
def test_killed_at(folder: Folder, point: str) -> None:
    table = Table(folder)
    table.run("CREATE SKIPPING INDEX ON {}")
    made = table.rows()
    planned = made.rdd.map(lambda row: row["id"])
    planned.getNumPartitions()  # lists the files

    killed(folder.url, point, OPTIMIZE.format(table.name))
    assert table.ids() == ids(made) == sorted(planned.collect()) == ALL

    table.run("VACUUM {}")  # the next writer recovers the table
    assert table.ids() == table.plain_ids() == ids(made) == sorted(planned.collect()) == ALL
    assert (folder.data() == table.files) == (not POINTS[point])
    assert folder.pyzorder_files(".staged") == []
    assert table.unindexed() == 0
    assert len(table.opened()) == (1 if POINTS[point] else len(table.files))

    table.optimize()
    table.run("RESTORE {} TO BEFORE OPTIMIZE")
    assert table.ids() == ALL


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("mid-retire", "recovery-undoing"),
        ("after-commit", "recovery-completing"),
    ],
)
def test_killed_twice(folder: Folder, first: str, second: str) -> None:
    """A table can be recovered even if the first process that tries to do so is also killed."""
    table = Table(folder)
    table.run("CREATE SKIPPING INDEX ON {}")
    for point in (first, second):
        killed(folder.url, point, OPTIMIZE.format(table.name))
        assert table.ids() == ALL
    table.optimize()
    assert table.ids() == table.plain_ids() == ALL
    assert table.unindexed() == 0 and len(table.opened()) == 1
    assert folder.pyzorder_files(".staged") == []


@pytest.mark.parametrize(
    ("statement", "point"),
    [
        ("RESTORE {} TO BEFORE OPTIMIZE", "mid-retire"),
        ("RESTORE {} TO BEFORE OPTIMIZE", "mid-move-in"),
        ("VACUUM {} RETAIN 0 HOURS", "mid-vacuum"),
    ],
)
def test_statements_killed(folder: Folder, statement: str, point: str) -> None:
    table = Table(folder)
    table.optimize()
    optimized = folder.data()
    killed(folder.url, point, statement.format(table.name))
    assert table.ids() == ALL
    table.run("VACUUM {}")
    assert table.ids() == table.plain_ids() == ALL
    restored = "RESTORE" in statement and POINTS[point]
    assert folder.data() == (table.files if restored else optimized)
    if "RESTORE" in statement and not restored:
        table.run(statement)  # repeated after the files have been moved away and back
        assert folder.data() == table.files and table.ids() == ALL
