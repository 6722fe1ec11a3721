"""Tests of the main functions that are fast enough to run on every supported Spark version (`make
smoke-matrix`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pyzorder


@pytest.mark.parametrize("provider", ["parquet", "orc"])
def test_optimize_then_prune(spark: SparkSession, provider: str, tmp_path: Path) -> None:
    name = f"smoke_{provider}"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", "8k")
    try:
        rows = spark.range(20_000).selectExpr("id % 400 AS a", "id div 400 * 7 % 50 AS b", "id")
        path = str(tmp_path / name)
        rows.repartition(16).write.format(provider).option("path", path).saveAsTable(name)
        query = f"SELECT * FROM {name} WHERE a = 7 OR (b BETWEEN 30 AND 34 AND a < 40)"
        before = sorted(spark.sql(query).collect())
        assert len(before) > 50
        assert pyzorder.explain(spark.sql(query))[0].opened == 16

        optimized = pyzorder.ZOrderTable.forName(spark, name).optimize().executeZOrderBy("a", "b")
        metrics = optimized.collect()[0]["metrics"]
        assert metrics["numFilesRemoved"] == 16
        assert metrics["numFilesAdded"] > 8

        scan = pyzorder.explain(spark.sql(query))[0]
        assert scan.unindexed == 0
        assert 1 <= scan.selected <= scan.total // 2
        assert sorted(spark.sql(query).collect()) == before
        assert "files selected" in spark.sql(f"EXPLAIN {query}").head()[0]  # type: ignore[index]
        index = spark.sql(f"SELECT * FROM skipping_index('{name}')")
        assert index.count() == metrics["numFilesAdded"]
        again = pyzorder.ZOrderTable.forName(spark, name).optimize().executeZOrderBy("a", "b")
        assert again.collect()[0]["metrics"]["numFilesAdded"] == 0
    finally:
        spark.conf.unset("spark.sql.zorder.optimize.targetFileSize")
        spark.sql(f"DROP TABLE IF EXISTS {name}")
