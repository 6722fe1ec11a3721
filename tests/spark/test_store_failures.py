"""If the disk is read-only or becomes full at any step of a command, the command reports this in a
short error. Every row still exists exactly once, and the next writer deletes leftovers."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.support import scans
from tests.support.disks import Disk, locked, small_disk
from tests.support.processes import journal_driver
from tests.support.tables import data_files, ids

ROOT = Path(__file__).parents[2]
ALL = list(range(40))

#: Commands, and the statements that prepare the table for each command. `{}` is the table.
COMMANDS = {
    "optimize": ("OPTIMIZE '{}' ZORDER BY (id)", []),
    "compact": ("OPTIMIZE '{}'", []),
    "restore": ("RESTORE '{}' TO BEFORE OPTIMIZE", ["OPTIMIZE '{}' ZORDER BY (id)"]),
    "vacuum": ("VACUUM '{}' RETAIN 0 HOURS", ["OPTIMIZE '{}' ZORDER BY (id)"]),
    "index": ("CREATE SKIPPING INDEX ON '{}'", []),
    "refresh": ("REFRESH SKIPPING INDEX ON '{}'", ["CREATE SKIPPING INDEX ON '{}'"]),
}


def by_extension(spark: SparkSession, table: Path) -> list[int]:
    return ids(spark.read.schema("id BIGINT, day INT").parquet(str(table)))


def by_others(spark: SparkSession, table: Path) -> list[int]:
    """The ids that an engine reads without the journal and the index."""
    off = {"journal__overlay": "false", "skipping__enabled": "false"}
    with scans.settings(spark, **{f"spark__sql__zorder__{k}": v for k, v in off.items()}):
        return by_extension(spark, table)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk") as mounted:
        yield mounted


def create(spark: SparkSession, table: Path) -> None:
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "int(id % 2) AS day")
    rows.repartition(2, "id").write.partitionBy("day").parquet(str(table))


def leftovers(table: Path) -> list[Path]:
    """The files that no command may leave behind: markers, temporary and staged files, leases,
    checksums of pyzorder's files, and snapshots to which no pointer refers."""
    named = "".join(path.read_text() for path in table.rglob("_index/_v*.json"))
    return [
        path
        for path in table.rglob("*")
        if path.name.startswith(("_zorder.", "_temporary-"))
        or path.suffix in (".staged", ".lease")
        or (path.suffix == ".crc" and "_zorder" in path.parts)
        or (path.name.startswith("_snapshot-") and path.name not in named)
    ]


def refused(spark: SparkSession, statement: str, condition: str) -> bool:
    """Runs a statement and returns whether it fails. If it fails, asserts that the error is short
    and has the given condition."""
    try:
        spark.sql(statement).collect()
    except AnalysisException as error:
        assert str(error).startswith(f"[{condition}] "), str(error)
        assert "\n" not in str(error) and len(str(error)) < 1000, str(error)
        return True
    return False


@pytest.mark.parametrize(
    ("command", "kind", "step"),
    [
        ("optimize", "files", 7),
        *(
            pytest.param(command, kind, 1, marks=pytest.mark.crash)
            for command in COMMANDS
            for kind in ("files", "pages")
        ),
    ],
)
def test_full(spark: SparkSession, disk: Disk, command: str, kind: str, step: int) -> None:
    """A full disk does no damage at any step of a command. The command runs repeatedly, each time
    with space for `step` more files or pages of data, until it succeeds."""
    statement, before = COMMANDS[command]
    spark.conf.set("spark.sql.zorder.vacuum.retentionCheck", "false")
    room, succeeded = 0, 0
    while succeeded < (3 if step == 1 else 1):
        table = disk.folder / f"t{room}"
        create(spark, table)
        for text in before:
            spark.sql(text.format(table)).collect()
        old = data_files(table)
        with disk.room(**{kind: room}):
            enough = not refused(spark, statement.format(table), "ZORDER_NO_SPACE")
            succeeded += enough
            assert by_extension(spark, table) == ALL, room
            assert by_others(spark, table) == ALL, room
            assert enough or data_files(table) == old, room
        spark.sql(f"VACUUM '{table}'").collect()
        assert by_extension(spark, table) == by_others(spark, table) == ALL, room
        assert leftovers(table) == [], room
        assert not refused(spark, f"OPTIMIZE '{table}' FULL ZORDER BY (id)", ""), room
        assert by_others(spark, table) == ALL, room
        room += step
    assert room > 2 * step


def test_vacuum_makes_room_for_itself(spark: SparkSession, disk: Disk) -> None:
    """VACUUM works on a completely full disk if there are files to delete. It keeps files that were
    replaced within the retention period, and reports a full disk if there are no other files to
    delete."""
    table = disk.folder / "t"
    create(spark, table)
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    spark.conf.set("spark.sql.zorder.vacuum.retentionCheck", "false")
    retired = set(map(str, table.rglob("*.retired")))
    with disk.room(pages=0):
        assert refused(spark, f"VACUUM '{table}' RETAIN 1 HOURS", "ZORDER_NO_SPACE")
        assert set(map(str, table.rglob("*.retired"))) == retired
        told = spark.sql(f"VACUUM '{table}' RETAIN 0 HOURS").collect()
        assert {row["path"].removeprefix("file:") for row in told} == retired
        assert not list(table.rglob("*.retired"))
        assert by_extension(spark, table) == by_others(spark, table) == ALL
    assert leftovers(table) == []
    assert not refused(spark, f"OPTIMIZE '{table}' FULL ZORDER BY (id)", "")


#: (what is locked, the error of RESTORE, the error of OPTIMIZE). Nothing can be created or deleted
#: in a locked folder.
LOCKED = [
    ("", "", "ZORDER_NOT_WRITABLE"),
    ("_zorder", "", "ZORDER_NOT_WRITABLE"),
    ("_zorder/_journal", "ZORDER_NOT_WRITABLE", "ZORDER_NOT_WRITABLE"),
    ("_zorder/_index", "", "ZORDER_NOT_WRITABLE"),
    ("_zorder/_staging", "ZORDER_NOT_WRITABLE", "ZORDER_NOT_WRITABLE"),
    ("_zorder/_retired", "ZORDER_NOT_WRITABLE", "ZORDER_NOT_WRITABLE"),
    ("day=1", "ZORDER_NOT_WRITABLE", "ZORDER_NOT_WRITABLE"),
    # RESTORE finds one file in each folder. It stays in place until the run is committed.
    ("the first file", "ZORDER_UNFINISHED", "ZORDER_NOT_WRITABLE"),
    ("the last file", "ZORDER_UNFINISHED", "ZORDER_UNFINISHED"),
]


@pytest.mark.parametrize(
    ("where", "command", "condition"),
    [
        pytest.param(
            where, command, condition, marks=[pytest.mark.crash] if command == "restore" else []
        )
        for where, *conditions in LOCKED
        for command, condition in zip(("restore", "optimize"), conditions, strict=True)
    ],
)
def test_locked(
    spark: SparkSession, tmp_path: Path, where: str, command: str, condition: str
) -> None:
    table = tmp_path / "t"
    statement, before = COMMANDS[command]
    create(spark, table)
    for text in before:
        spark.sql(text.format(table)).collect()
    old = data_files(table)
    place = {"the first file": old[0], "the last file": old[-1]}.get(where, table / where)
    if not place.exists():
        place.mkdir(parents=True)
    with locked(place):
        assert refused(spark, statement.format(table), condition) == bool(condition)
        assert by_extension(spark, table) == ALL
        if condition == "ZORDER_NOT_WRITABLE":
            assert data_files(table) == old
        if condition != "ZORDER_UNFINISHED":
            assert by_others(spark, table) == ALL
    spark.sql(f"VACUUM '{table}'").collect()
    assert leftovers(table) == []
    assert by_extension(spark, table) == by_others(spark, table) == ALL
    if condition == "ZORDER_NOT_WRITABLE":
        assert data_files(table) == old
        assert not refused(spark, statement.format(table), "")
        assert by_extension(spark, table) == by_others(spark, table) == ALL


def test_read_only(spark: SparkSession, disk: Disk) -> None:
    table = disk.folder / "t"
    create(spark, table)
    spark.conf.set("spark.sql.zorder.vacuum.retentionCheck", "false")
    fresh = list(table.rglob("*"))
    with disk.read_only():
        for name in ("optimize", "compact", "vacuum", "index"):
            failed = refused(spark, COMMANDS[name][0].format(table), "ZORDER_NOT_WRITABLE")
            assert failed == (name != "vacuum"), name
        assert refused(spark, COMMANDS["restore"][0].format(table), "ZORDER_CANNOT_RESTORE")
        assert by_extension(spark, table) == ALL
    assert list(table.rglob("*")) == fresh
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    with disk.read_only():
        for name in ("optimize", "restore", "vacuum", "refresh"):
            statement = COMMANDS[name][0].format(table).replace("ZORDER", "FULL ZORDER")
            assert refused(spark, statement, "ZORDER_NOT_WRITABLE"), statement
        assert by_extension(spark, table) == ALL
        assert scans.opened(spark.read.parquet(str(table)).where("id > 1000")) == set()
    assert by_others(spark, table) == ALL


@pytest.mark.crash
def test_another_user(spark: SparkSession) -> None:
    """If a user may read the table but not write to it, queries work. Write statements report that
    the user lacks permission."""
    if os.geteuid() != 0:
        pytest.skip("only root can run a process as another user")
    stranger = 65534

    def as_stranger(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command],
            capture_output=True,
            text=True,
            timeout=180,
            cwd="/",
            user=stranger,
            group=stranger,
            extra_groups=[],
            env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": "/tmp"},
        )

    try:
        can_read = as_stranger("-c", "import pyspark, tests.support.sessions").returncode == 0
    except PermissionError:
        can_read = False
    if not can_read:
        pytest.skip("other users cannot read this Python installation or this clone")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        table = Path(folder) / "t"
        create(spark, table)
        for statement in ("OPTIMIZE '{}' FULL ZORDER BY (id)", "CREATE SKIPPING INDEX ON '{}'"):
            before = list(table.rglob("*"))
            driver = journal_driver.__file__
            said = as_stranger(driver, str(table), "", statement.format(table))
            assert "[ZORDER_NOT_WRITABLE]" in said.stderr, said.stderr[-3000:]
            assert list(table.rglob("*")) == before
            count = f"SELECT assert_true(count(*) = 40) FROM parquet.`{table}`"
            assert as_stranger(driver, str(table), "", count).returncode == 0
            spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (id)")
            spark.sql(f"DROP SKIPPING INDEX ON '{table}'")
