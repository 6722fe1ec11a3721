"""ZORDER BY AUTO on tables of many kinds: small, partitioned, with odd names."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pyzorder
from pyzorder import bridge
from tests.support.sampled import long
from tests.support.scans import opened, settings
from tests.support.tables import aim_at, metrics

FILES = 16

TABLES = {
    "without rows": ("(id BIGINT) USING parquet", "", "id = {n}", []),
    "ORC": (
        "(id BIGINT, x BIGINT) USING orc",
        "SELECT /*+ REPARTITION(2) */ id, id * 7919 % 1000 FROM",
        "x = {n} % 1000",
        ["x"],
    ),
    "partitions": (
        "(id BIGINT, x BIGINT, p INT) USING parquet PARTITIONED BY (p)",
        "SELECT /*+ REPARTITION(2) */ id, id * 7919 % 1000, id % 2 FROM",
        "p = 1 AND x = {n} % 1000",
        ["x"],
    ),
    "only partitions": (
        "(id BIGINT, p INT) USING parquet PARTITIONED BY (p)",
        "SELECT /*+ REPARTITION(2) */ id, id % 2 FROM",
        "p = 1 AND id != {n} + 2000",
        [],
    ),
    "names with spaces": (
        "(`my col` BIGINT, x BIGINT) USING parquet",
        "SELECT id * 7919 % 1000, id FROM",
        "`my col` = {n} % 1000",
        ["my col"],
    ),
    "odd names": (
        "(`a.b ``c` BIGINT, s STRUCT<`x.y`: BIGINT>) USING parquet",
        "SELECT id * 7919 % 1000, named_struct('x.y', id * 104729 % 1000) FROM",
        "s.`x.y` = {n} % 1000 AND `a.b ``c` != 5000",
        ["s.`x.y`"],
    ),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("by_path", long([False, True], False))
def test_tables(
    spark: SparkSession, database: str, tmp_path: Path, name: str, by_path: bool
) -> None:
    create, select, condition, columns = TABLES[name]
    folder = tmp_path / "db" / "auto_t"
    spark.sql(f"CREATE TABLE auto_t {create}")
    spark.sql("CREATE SKIPPING INDEX ON auto_t")
    if by_path and not select:
        pytest.skip("the format of a folder without files is unknown")
    if select:
        spark.sql(f"INSERT INTO auto_t {select} range(1000)")
        aim_at(spark, folder, FILES)
    with settings(spark, spark__sql__zorder__workload__record="true"):
        for number in range(6):
            spark.sql(f"SELECT * FROM auto_t WHERE {condition.format(n=number * 97)}").collect()
    bridge.flush_workload(spark)
    target = f"'{folder}'" if by_path else "auto_t"
    done = metrics(spark.sql(f"OPTIMIZE {target} ZORDER BY AUTO"))
    assert list(done["clusteringColumns"] or ()) == columns, done["remark"]
    if name == "names with spaces":
        assert done["remark"].startswith("AUTO chose (`my col`) for the 6 recorded queries.")
    bridge.clear_workload(spark, "auto_t")


#: Small tables: the number of rows and of files.
SMALL = [(1, 1), (1000, 1), (1000, 3), (1000, 20)]


@pytest.mark.parametrize(("rows", "files"), SMALL)
@pytest.mark.parametrize("condition", ["x = 5", "x < y AND x < 9"])
def test_small_tables(
    spark: SparkSession, database: str, rows: int, files: int, condition: str
) -> None:
    """A table for which one file is enough is only compacted."""
    spark.sql(
        "CREATE TABLE small USING parquet TBLPROPERTIES ('zorder.workload.record' = 'true',"
        f" 'zorder.clusterBy' = 'auto') AS SELECT /*+ REPARTITION({files}) */ id AS x,"
        f" id * 7 % 100 AS y FROM range({rows})"
    )
    for _ in range(8):
        spark.sql(f"SELECT y FROM small WHERE {condition}").collect()
    bridge.flush_workload(spark)
    assert not metrics(spark.sql("OPTIMIZE small DRY RUN"))["clusteringColumns"]
    done = metrics(spark.sql("OPTIMIZE small"))
    assert done["remark"].startswith("AUTO only merges small files: with other columns, the 8 ")
    assert done["numFilesRemoved"] == (files if files > 1 else 0)
    (again,) = pyzorder.maintain(spark, "small")
    assert again.result == "nothing" and "AUTO only merges small files" in again.reason
    bridge.clear_workload(spark, "small")


def test_partitions_that_pay_off(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """Another layout is created only in the partitions in which it pays off. The others keep their
    clustered files, also in later runs."""
    folder = tmp_path / "db" / "parts"
    spark.sql(
        "CREATE TABLE parts (a BIGINT, b BIGINT, s STRING, p INT) USING parquet PARTITIONED BY (p)"
        " TBLPROPERTIES ('zorder.clusterBy' = 'auto')"
    )
    spark.sql(
        "INSERT INTO parts SELECT id * 7919 % 40000, id * 104729 % 40000, sha(string(id)),"
        " id % 4 FROM range(40000)"
    )
    aim_at(spark, folder, 32)
    assert metrics(spark.sql("OPTIMIZE parts ZORDER BY (a)"))["numFilesAdded"] == 32
    with settings(spark, spark__sql__zorder__workload__record="true"):
        for number in range(40):
            spark.sql(f"SELECT s FROM parts WHERE p = 1 AND b = {number * 997}").collect()
        spark.sql("SELECT s FROM parts WHERE b = 5").collect()
    bridge.flush_workload(spark)
    (planned,) = pyzorder.maintain(spark, "parts", dryRun=True)
    assert planned.statement is not None, planned.reason
    assert " WHERE (`p` <=> 1) ZORDER BY " in planned.statement
    assert planned.partitions == (1, 4)
    for statement in ("OPTIMIZE parts DRY RUN", "OPTIMIZE parts"):
        done = metrics(spark.sql(statement))
        assert done["clusteringColumns"] == ["b"] and done["numFilesRemoved"] == 8
        assert "3 partitions keep their layout" in done["remark"]
    assert len(opened(spark.sql("SELECT s FROM parts WHERE p = 1 AND b = 77"))) == 1
    assert len(opened(spark.sql("SELECT s FROM parts WHERE p = 2 AND a = 77"))) == 1
    again = metrics(spark.sql("OPTIMIZE parts"))
    assert again["numFilesRemoved"] == 0 and "in no partition would the queries" in again["remark"]
    (nothing,) = pyzorder.maintain(spark, "parts")
    assert nothing.result == "nothing"
    bridge.clear_workload(spark, "parts")
