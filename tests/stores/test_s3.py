"""Faults specific to S3: lost responses, interrupted renames, conflicting conditional puts."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from tests.stores import s3_server
from tests.stores.tables import ALL, Table
from tests.support import scans
from tests.support.folders import Folder
from tests.support.processes.journal_driver import killed

pytestmark = pytest.mark.stores


@pytest.fixture(autouse=True)
def on_s3(folder: Folder) -> None:
    if folder.scheme != "s3a":
        pytest.skip("needs S3")


#: (how a request fails once, pattern of its object)
FAULTS = [
    *((s3_server.LOSE, name) for name in ("prepare", "retire", "outcome", "done", "_v0.*json")),
    (s3_server.LOSE, "_incarnation"),
    (s3_server.LOSE, r"_zorder\.1"),
    (s3_server.CONFLICT, "prepare"),
    (s3_server.CONFLICT, "outcome"),
    (s3_server.CONFLICT, "_v0.*json"),
]


@pytest.mark.parametrize(("how", "record"), FAULTS)
def test_a_put_that_fails(folder: Folder, how: str, record: str) -> None:
    """If the response to a put is lost, S3A does not learn that the put succeeded, and repeats
    it."""
    table = Table(folder)
    s3_server.fail(folder.conf.get("fs.s3a.endpoint"), how, f"PUT .*{record}$")
    assert table.optimize()["numFilesAdded"] > 0
    assert table.ids() == table.plain_ids() == ALL
    assert table.unindexed() == 0
    assert len(folder.pyzorder_files(".prepare")) == 1  # the lock is held by the first attempt
    table.run("RESTORE {} TO BEFORE OPTIMIZE")
    assert folder.data() == table.files


#: (point at which OPTIMIZE is killed, files copied but not yet deleted, targets of the copies)
HALF_MOVES = [
    ("after-retire", "part-", "_zorder/_retired/_1/_{}.retired"),
    ("after-commit", ".staged", "{}"),
]


@pytest.mark.parametrize(("point", "files", "to"), HALF_MOVES)
def test_a_rename_is_killed_between_copy_and_deletion(
    folder: Folder, point: str, files: str, to: str
) -> None:
    table = Table(folder)
    table.run("CREATE SKIPPING INDEX ON {}")
    killed(folder.url, point, f"OPTIMIZE {table.name} FULL ZORDER BY (id)")
    copied = (folder.pyzorder_files(files) if files == ".staged" else folder.data())[0]
    name = copied.rpartition("/_")[2].removesuffix(".staged") if files == ".staged" else copied
    folder.copy(copied, to.format(name))
    assert table.ids() == ALL
    table.run("VACUUM {}")
    assert table.ids() == table.plain_ids() == ALL
    assert folder.pyzorder_files(".staged") == []
    assert table.unindexed() == 0
    assert set(folder.data()) & set(table.files) == (
        set(table.files) if point == "after-retire" else set()
    )


def test_refused_without_conditional_puts(folder: Folder) -> None:
    table = Table(folder)
    off = {"spark__hadoop__fs__s3a__create__conditional__enabled": "false"}
    disabled = {
        "fs__s3a__create__conditional__enabled": "false",
        "fs__s3a__impl__disable__cache": "true",
    }
    for statement in ("OPTIMIZE {} ZORDER BY (id)", "CREATE SKIPPING INDEX ON {}"):
        with (
            scans.settings(folder.spark, **off, **disabled),
            pytest.raises(PySparkException, match="ZORDER_UNSUPPORTED_STORE"),
        ):
            table.run(statement)
        assert folder.data() == table.files and table.ids() == ALL
        assert folder.pyzorder_files() == []
