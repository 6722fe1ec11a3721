"""If an unfinished OPTIMIZE may have moved a partition's files, the partition cannot be renamed,
and the locations of the partition and its table cannot be changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support import scans
from tests.support.processes.journal_driver import killed
from tests.support.sampled import crash
from tests.support.tables import ids

ROWS = list(range(40))


@pytest.mark.parametrize("point", crash(["before-commit", "after-commit"], "before-commit"))
def test_killed(spark: SparkSession, tmp_path: Path, point: str) -> None:
    table, elsewhere = tmp_path / "t", tmp_path / "elsewhere"
    made = [
        f"CREATE TABLE moving (id BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{table}'",
        "MSCK REPAIR TABLE moving",
    ]
    rename = "ALTER TABLE moving PARTITION (p = 0) RENAME TO PARTITION (p = 7)"
    move = f"ALTER TABLE moving PARTITION (p = 1) SET LOCATION '{elsewhere}'"
    spark.sql(made[0])
    try:
        spark.sql("INSERT INTO moving SELECT id, int(id % 2) FROM range(0, 40, 1, 3)")
        killed(table, point, "; ".join([*made, "OPTIMIZE moving ZORDER BY (id)"]))
        for statement in (rename, move, f"ALTER TABLE moving SET LOCATION '{elsewhere}'"):
            with pytest.raises(PySparkException, match="ZORDER_PARTITIONS_IN_USE"):
                spark.sql(statement)
        assert ids(spark.table("moving")) == ROWS
        with scans.settings(spark, spark__sql__zorder__journal__lease="1s"):
            spark.sql("VACUUM moving").collect()
        spark.sql(rename)
        shutil.move(table / "p=1", elsewhere)
        spark.sql(move)
        assert ids(spark.table("moving")) == ROWS
        assert spark.table("moving").where("p = 7").count() == 20
    finally:
        spark.sql("DROP TABLE moving")
