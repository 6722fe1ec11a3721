"""The fallback's commands report a full or read-only disk."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyzorder import fallback
from pyzorder.errors import ZOrderError
from tests.support.disks import Disk, small_disk
from tests.support.tables import data_files, rows_of, sales


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk") as disk:
        yield disk


Command = Callable[[SparkSession, str], object]

#: Numbers that make the names of copies unique. Each attempt writes to a new folder.
numbers = itertools.count()


def copied(spark: SparkSession, table: str) -> object:
    return fallback.optimize(spark, table, ["a", "b"], to=f"{table}-copy-{next(numbers)}")


COMMANDS = [
    pytest.param(fallback.create_index, id="create_index"),
    pytest.param(copied, id="optimize", marks=pytest.mark.fallback),
]


def refused_for_space(disk: Disk, command: Callable[[], object], **room: int) -> bool:
    """Runs the command, and returns whether it failed. The command may fail only because the disk
    is full."""
    try:
        with disk.room(**room):
            command()
    except ZOrderError as error:
        assert re.search("ZORDER_NO_SPACE.*rows of the table are unchanged", str(error)), error
        return True
    return False


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_reported(spark: SparkSession, disk: Disk, command: Command) -> None:
    """A read-only or full disk is reported at every step of a command. The command runs on a
    read-only disk, and then on a disk with free space for 0, 1, 2 … files until it succeeds."""
    table = disk.folder / "t"
    sales(spark, 2000).write.parquet(str(table))
    rows, files = rows_of(spark.read.parquet(str(table))), data_files(table)

    def attempt() -> object:
        assert data_files(table) == files
        return command(spark, str(table))

    with disk.read_only(), pytest.raises(ZOrderError, match="ZORDER_NOT_WRITABLE.*Read-only"):
        attempt()
    refused = itertools.takewhile(
        lambda left: refused_for_space(disk, attempt, files=left), range(50)
    )
    assert 1 <= len(list(refused)) < 50
    assert rows_of(spark.read.parquet(str(table))) == rows
    assert rows_of(fallback.read(spark, str(table)).where("true")) == rows
