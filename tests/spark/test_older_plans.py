"""A plan that was created before a table's first OPTIMIZE returns every row once, even while this
OPTIMIZE moves files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.processes.journal_driver import killed
from tests.support.sampled import crash

ROWS = list(range(20))


@pytest.mark.parametrize("point", crash(["before-commit", "after-commit"], "before-commit"))
@pytest.mark.parametrize("partitioned", crash(["", "PARTITIONED BY (p)"], "PARTITIONED BY (p)"))
def test_killed(spark: SparkSession, tmp_path: Path, partitioned: str, point: str) -> None:
    folder = tmp_path / "t"
    made = [
        f"CREATE TABLE older (id BIGINT, p INT) USING parquet {partitioned} LOCATION '{folder}'",
        *(["MSCK REPAIR TABLE older"] if partitioned else []),
    ]
    spark.sql(made[0])
    try:
        spark.sql("INSERT INTO older SELECT id, int(id % 2) FROM range(0, 20, 1, 3)")
        plans = [spark.newSession().sql(f"SELECT id FROM older {w}") for w in ("", "WHERE p < 5")]
        for df in plans:
            df._jdf.queryExecution().optimizedPlan()
        killed(folder, point, "; ".join([*made, "OPTIMIZE older ZORDER BY (id)"]))
        for df in plans:
            assert sorted(row.id for row in df.collect()) == ROWS
    finally:
        spark.sql("DROP TABLE older")


def test_two_folders(spark: SparkSession, tmp_path: Path) -> None:
    """A plan that reads two folders returns every row once, even if one of the folders had been
    optimized before the plan was created."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        spark.range(0, 20, 1, 3).write.parquet(str(folder))
    spark.sql(f"OPTIMIZE '{first}' ZORDER BY (id)")
    planned = spark.newSession().read.parquet(str(first), str(second))
    planned._jdf.queryExecution().optimizedPlan()
    killed(second, "before-commit", f"OPTIMIZE '{second}' ZORDER BY (id)")
    assert sorted(row.id for row in planned.collect()) == sorted(2 * ROWS)


def test_a_partition_with_its_own_index(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    rows = spark.range(0, 40, 1, 3).selectExpr("id", "int(id % 2) AS p")
    rows.write.partitionBy("p").parquet(str(folder))
    spark.sql(f"CREATE TABLE part (id BIGINT) USING parquet LOCATION '{folder / 'p=0'}'")
    try:
        spark.sql("CREATE SKIPPING INDEX ON part")
        planned = spark.newSession().table("part").where("id >= 0")
        planned._jdf.queryExecution().optimizedPlan()
        killed(folder, "before-commit", f"OPTIMIZE '{folder}' ZORDER BY (id)")
        assert sorted(row.id for row in planned.collect()) == list(range(0, 40, 2))
    finally:
        spark.sql("DROP TABLE part")
