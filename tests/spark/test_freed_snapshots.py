"""The driver may free a loaded snapshot's bytes. If the snapshot's file is then damaged or deleted,
statements treat the index as unreadable, as they do in a session that has not loaded it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tests.support.sampled import long

LOOKUP = "SELECT count(*), sum(id) FROM t WHERE id < 10"

#: The statements that are run on a damaged index, and the number of rows in the table afterwards.
STATEMENTS = {
    LOOKUP: 100,
    "SELECT sum(x) FROM t WHERE x > 3": 100,
    "SELECT min(x), max(x) FROM t": 100,
    "REFRESH SKIPPING INDEX ON t": 100,
    "CREATE SKIPPING INDEX IF NOT EXISTS ON t": 100,
    "DROP SKIPPING INDEX ON t": 100,
    "DROP SKIPPING INDEX ON t; CREATE SKIPPING INDEX ON t (x, lower(s))": 100,
    "DESCRIBE SKIPPING INDEX ON t": 100,
    "OPTIMIZE t": 100,
    "OPTIMIZE t ZORDER BY (x)": 100,
    "OPTIMIZE t FULL ZORDER BY (id, x)": 100,
    "OPTIMIZE t ZORDER BY (x) DRY RUN": 100,
    "VACUUM t": 100,
    "RESTORE t TO BEFORE OPTIMIZE": 100,
    "INSERT INTO t SELECT id, id / 7D, 'S' FROM range(100, 105)": 105,
    "INSERT OVERWRITE t SELECT id, id / 7D, 'S' FROM range(20)": 20,
    "TRUNCATE TABLE t": 0,
}

#: The statements that `make test` runs.
FEW = [LOOKUP, "REFRESH SKIPPING INDEX ON t", "DESCRIBE SKIPPING INDEX ON t", "OPTIMIZE t"]

DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:50]),
    "deleted": Path.unlink,
}


def free_bytes(spark: SparkSession) -> None:
    """Makes the JVM free all memory that it may free. It does so before it throws an
    OutOfMemoryError."""
    jvm = spark._jvm
    longs = jvm.java.lang.Runtime.getRuntime().maxMemory() // 8 + 1
    with suppress(Py4JError):
        spark.sparkContext._gateway.new_array(jvm.long, longs)
        pytest.fail("an array fitted that is larger than the heap")


def damage(spark: SparkSession, table: Path, how: str) -> None:
    """Damages all snapshots after the JVM has freed their bytes."""
    free_bytes(spark)
    for file in (table / "_zorder" / "_index").glob("_snapshot-*"):
        DAMAGES[how](file)


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("statement", long(STATEMENTS, *FEW))
@pytest.mark.parametrize("staleness", long(["0s", "1h"], "0s"))
def test_a_damaged_snapshot(
    spark: SparkSession, database: str, tmp_path: Path, statement: str, how: str, staleness: str
) -> None:
    spark.conf.set("spark.sql.zorder.index.maxStaleness", staleness)
    spark.sql("CREATE TABLE t (id BIGINT, x DOUBLE, s STRING) USING parquet")
    spark.sql("INSERT INTO t SELECT /*+ REPARTITION(4) */ id, id / 7D, 'S' FROM range(100)")
    spark.sql("OPTIMIZE t ZORDER BY (id)")
    assert spark.sql(LOOKUP).first() == (10, 45)
    table = tmp_path / "db" / "t"
    damage(spark, table, how)
    for each in statement.split(";"):
        spark.sql(each).collect()
    rows = STATEMENTS[statement]
    assert spark.sql("SELECT count(id), count(DISTINCT x) FROM t").first() == (rows, rows)
    spark.sql("CREATE SKIPPING INDEX IF NOT EXISTS ON t")
    spark.sql("REFRESH SKIPPING INDEX ON t")
    described = spark.sql("DESCRIBE SKIPPING INDEX ON t").collect()
    assert {row["unindexed"] for row in described} == {0}
    least = min(rows, 10)
    assert spark.sql(LOOKUP).first() == (least, sum(range(least)) or None)
