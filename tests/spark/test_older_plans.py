"""A plan that was created before a table's first OPTIMIZE returns every row once, even while this
OPTIMIZE moves files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.processes.journal_driver import killed

ROWS = list(range(20))


@pytest.mark.parametrize(
    "point", ["before-commit", pytest.param("after-commit", marks=pytest.mark.crash)]
)
@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (p)"])
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
