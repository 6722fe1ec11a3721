"""After an OPTIMIZE has been killed, queries find every row in copies of the table, and in
partitions that are read by path."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pyzorder.index import visible_files
from pyzorder.index.stores import LocalStore
from pyzorder.index.table_folder import TableFolder
from tests.support import scans
from tests.support.processes.journal_driver import killed
from tests.support.sampled import crash
from tests.support.tables import ids

ROWS = list(range(60))

POINTS = ["before-commit", "after-commit", "mid-move-in"]

#: How the table is copied: with or without the files' modification times.
COPIES: dict[str, Any] = {"without times": shutil.copyfile, "with times": shutil.copy2}


#: The fail points. `make test` uses only one of them.
SAMPLED = crash(POINTS, "after-commit")


@pytest.fixture(params=SAMPLED)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of a table with two partitions of three files each, after an OPTIMIZE was killed.
    The table `killed` exists only in the killed process. Its partition d=2 is in the folder
    `elsewhere`."""
    folder = tmp_path / "t"
    killed(
        folder,
        request.param,
        f"CREATE TABLE killed (id BIGINT, d INT) USING parquet PARTITIONED BY (d) LOCATION '{folder}'; "
        f"ALTER TABLE killed ADD PARTITION (d = 2) LOCATION '{tmp_path / 'elsewhere'}'; "
        "INSERT INTO killed SELECT /*+ REPARTITION(3) */ id, int(id % 3) FROM range(60); "
        "OPTIMIZE killed ZORDER BY (id)",
    )
    return folder


def vacuum(spark: SparkSession, folder: Path) -> None:
    with scans.settings(spark, spark__sql__zorder__journal__lease="1s"):
        spark.sql(f"VACUUM '{folder}'").collect()


@pytest.mark.parametrize("kind", crash(COPIES, "without times"))
@pytest.mark.parametrize("point", SAMPLED)
def test_copies(spark: SparkSession, tmp_path: Path, kind: str, point: str) -> None:
    """A copy contains every row exactly once, both before and after the next command finishes the
    killed run. The copy may have been made without the files' modification times."""
    original, copy = tmp_path / "t", tmp_path / "copy"
    spark.range(0, 60, 1, 3).write.parquet(str(original))
    killed(original, point, f"OPTIMIZE '{original}' ZORDER BY (id)")
    shutil.copytree(original, copy, copy_function=COPIES[kind])
    found = [file.place for file in visible_files(LocalStore(), TableFolder(str(copy)))]
    assert sum(pq.read_metadata(path).num_rows for path in found) == len(ROWS)
    for folder in (original, copy):
        assert ids(spark.read.parquet(str(folder))) == ROWS
        vacuum(spark, folder)
        assert ids(spark.read.parquet(str(folder))) == ROWS
        with scans.settings(spark, spark__sql__zorder__journal__overlay="false"):
            assert ids(spark.newSession().read.parquet(str(folder))) == ROWS


@pytest.mark.parametrize("gone", crash(["a partition", "the catalog"], "a partition"))
def test_copies_of_partitions(spark: SparkSession, table: Path, gone: str) -> None:
    """A read of a copied table folder returns each row of the partitions in this folder once, even
    if a partition is missing. Whether a folder is a copy is decided for each partition separately.
    """
    copy = table.parent / "copy"
    shutil.copytree(table, copy, copy_function=shutil.copyfile)
    rows = [i for i in ROWS if i % 3 != 2]
    if gone == "a partition":
        shutil.rmtree(copy / "d=0")
        rows = [i for i in ROWS if i % 3 == 1]
    assert ids(spark.read.schema("id BIGINT").parquet(str(copy))) == rows


@pytest.mark.parametrize("schema", crash(["id BIGINT", "id BIGINT, d INT"], "id BIGINT"))
def test_partitions_by_path(spark: SparkSession, table: Path, schema: str) -> None:
    """A read with a schema returns the rows of every partition in the table's folder."""
    reader = spark.read.schema(schema)
    assert ids(reader.parquet(str(table))) == [i for i in ROWS if i % 3 != 2]
    for day in (0, 1):
        rows = [i for i in ROWS if i % 3 == day]
        assert ids(reader.parquet(str(table / f"d={day}"))) == rows
        below = reader.option("basePath", str(table)).parquet(str(table / f"d={day}"))
        assert ids(below) == rows
        assert {row.d for row in below.select("d").distinct().collect()} == {day}
