"""If an OPTIMIZE is killed, no row is lost, even if the scheme of the table's location is in upper
case (such as FILE:/t). Hadoop ignores the case of schemes, and listings return them in lower
case."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support import scans
from tests.support.processes.journal_driver import killed
from tests.support.sampled import crash
from tests.support.tables import data_files, ids

ROWS = list(range(20))

#: The partition clause, and the location of the partition p=1 relative to the table's folder.
TABLES = {
    "no partitions": ("", ""),
    "a partition inside": ("PARTITIONED BY (p)", "p=1"),
    "a partition outside": ("PARTITIONED BY (p)", "../elsewhere"),
}


@pytest.fixture(params=crash(TABLES, "a partition outside"))
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """The folder of the table `capitals`."""
    folder = tmp_path / "t"
    for statement in statements(request.param, folder):
        spark.sql(statement)
    spark.sql("INSERT INTO capitals SELECT id, 1 FROM range(0, 20, 1, 3)")
    yield folder
    spark.sql("DROP TABLE capitals")


def statements(case: str, folder: Path) -> list[str]:
    partitioned, place = TABLES[case]
    made = [
        f"CREATE TABLE capitals (id BIGINT, p INT) USING parquet {partitioned}"
        f" LOCATION 'FILE:{folder}'"
    ]
    if place:
        location = (folder / place).resolve()
        made.append(f"ALTER TABLE capitals ADD PARTITION (p = 1) LOCATION 'FILE:{location}'")
    return made


@pytest.mark.parametrize("point", crash(["before-commit", "after-commit"], "after-commit"))
def test_killed(spark: SparkSession, table: Path, request, point: str) -> None:
    case = request.node.callspec.params["table"]
    killed(table, point, "; ".join([*statements(case, table), "OPTIMIZE capitals ZORDER BY (id)"]))
    assert ids(spark.newSession().table("capitals")) == ROWS
    with scans.settings(spark, spark__sql__zorder__journal__lease="1s"):
        spark.sql("VACUUM capitals").collect()
    assert ids(spark.newSession().table("capitals")) == ROWS
    with scans.settings(spark, spark__sql__zorder__journal__overlay="false"):
        assert ids(spark.newSession().table("capitals")) == ROWS


def test_skipping_and_restore(spark: SparkSession, table: Path) -> None:
    before = data_files(table.parent)
    with scans.settings(spark, spark__sql__zorder__optimize__targetFileSize="1k"):
        spark.sql("OPTIMIZE capitals FULL ZORDER BY (id)").collect()
    assert ids(spark.table("capitals").where("id < 5")) == ROWS[:5]
    spark.sql("RESTORE capitals TO BEFORE OPTIMIZE")
    assert data_files(table.parent) == before
    assert ids(spark.table("capitals")) == ROWS
