"""Creates the table `stale`, and sessions that plan queries on this table from the index, without a
listing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

KINDS = {
    "a table": "CREATE TABLE stale (id BIGINT, p INT) USING parquet LOCATION '{}'",
    "a partitioned table": "CREATE TABLE stale (id BIGINT, p INT) USING parquet PARTITIONED BY (p)"
    " LOCATION '{}'",
}


def insert(spark: SparkSession, first: int, end: int) -> None:
    rows = spark.range(first, end, 1, 2).selectExpr("id", "cast(id % 2 as int) p")
    rows.write.insertInto("stale")


def append(folder: Path, numbers: list[int]) -> Path:
    """Adds rows to partition 0. Does not use pyzorder."""
    place = folder / "p=0" if (folder / "p=0").exists() else folder
    columns = {"id": pa.array(numbers, pa.int64())}
    if place == folder:
        columns["p"] = pa.array([0] * len(numbers), pa.int32())
    path = place / f"foreign-{numbers[0]}.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def count(spark: SparkSession, where: str = "true") -> int:
    """Counts the rows with a scan."""
    return int(spark.sql(f"SELECT sum(1) FROM stale WHERE {where}").collect()[0][0] or 0)


def fresh(spark: SparkSession) -> SparkSession:
    """Creates a session that has not used the table yet."""
    return spark.newSession()


def bound(spark: SparkSession, time: str) -> SparkSession:
    spark.conf.set("spark.sql.zorder.index.maxStaleness", time)
    return spark
