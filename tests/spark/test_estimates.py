"""OPTIMIZE … DRY RUN and DESCRIBE SKIPPING INDEX estimate the number of files that
queries open."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.tables import aim_at, data_files, metrics, sales


def test_dry_run_touches_nothing(spark: SparkSession, database: str, tmp_path: Path) -> None:
    sales(spark).write.format("parquet").saveAsTable("t")
    found = sorted(glob.glob(str(tmp_path / "db" / "t" / "**"), recursive=True))
    result = metrics(spark.sql("OPTIMIZE t ZORDER BY (a) DRY RUN"))
    assert result["dryRun"] and result["numFilesRemoved"] == 3
    assert sorted(glob.glob(str(tmp_path / "db" / "t" / "**"), recursive=True)) == found


@pytest.mark.parametrize(
    ("method", "curve"), [("boundaries", "zorder"), ("direct", "zorder"), ("boundaries", "linear")]
)
def test_a_dry_run_estimates_what_queries_open(
    spark: SparkSession, database: str, tmp_path: Path, method: str, curve: str
) -> None:
    """A dry run computes its estimates from a sample. The estimates agree with the files that
    OPTIMIZE then writes."""
    spark.range(0, 60_000, 1, 4).selectExpr(
        "cast(xxhash64(id) % 100000 as int) a", "cast(xxhash64(id, 1) % 100000 as double) b"
    ).write.format("parquet").saveAsTable("t")
    size = aim_at(spark, tmp_path / "db" / "t", 25)
    spark.conf.set("spark.sql.zorder.optimize.method", method)
    spark.conf.set("spark.sql.zorder.optimize.curve", curve)
    planned = metrics(spark.sql("OPTIMIZE t ZORDER BY (a, b) DRY RUN"))
    done = metrics(spark.sql("OPTIMIZE t ZORDER BY (a, b)"))
    assert planned["numFilesRemoved"] == done["numFilesRemoved"] == 4
    assert planned["numFilesAdded"] == pytest.approx(done["numFilesAdded"], abs=1)
    assert planned["filesAdded"]["totalSize"] == pytest.approx(size, rel=0.01)
    assert done["openedShares"] is None
    described = {row["column"]: row for row in spark.sql("DESC SKIPPING INDEX ON t").collect()}
    for shares in planned["openedShares"]:
        column = described[shares["column"]]
        assert shares["lookupBefore"] > 0.99 and shares["rangeBefore"] > 0.99
        files = [
            pq.read_table(f, columns=[shares["column"]]) for f in data_files(tmp_path / "db/t")
        ]
        bounds = [(min(v), max(v)) for f in files for v in [f[shares["column"]].to_pylist()]]
        wanted = [v for f in files for v in f[shares["column"]].to_pylist()[::50]]
        opened = sum(low <= v <= high for v in wanted for low, high in bounds)
        truth = opened / len(wanted) / len(files)
        assert shares["lookupAfter"] == pytest.approx(truth, rel=0.15)
        assert column["lookup_share"] == pytest.approx(truth, rel=0.15)
        assert shares["lookupAfter"] < shares["rangeAfter"] <= shares["lookupAfter"] + 0.0101
        assert column["lookup_share"] < column["range_share"]


def test_describe_says_whether_another_optimize_would_help(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    sales(spark).write.format("parquet").saveAsTable("t")
    spark.sql("CREATE SKIPPING INDEX ON t")

    def described() -> dict[str, Any]:
        return {row["column"]: row for row in spark.sql("DESC SKIPPING INDEX ON t").collect()}

    before = described()
    (verdict,) = {row["verdict"] for row in before.values()}
    assert verdict.startswith("The table has no clustering columns. Pays off: ")
    assert {row["advice"] for row in before.values()} == {f"OPTIMIZE {database}.t"}
    assert before["a"]["clustered"] == 0 and before["a"]["last_optimize"] is None
    aim_at(spark, tmp_path / "db" / "t", 12)
    spark.sql("OPTIMIZE t ZORDER BY (a, b)")
    after = described()
    assert after["a"]["clustered"] == after["a"]["files"] == len(data_files(tmp_path / "db" / "t"))
    assert after["a"]["last_optimize"] is not None
    idle = "Nothing to do: the files are already clustered by a, b."
    assert (after["a"]["verdict"], after["a"]["advice"]) == (idle, None)
    assert after["b"]["verdict"] == after["c"]["verdict"] == idle
    assert after["c"]["clustered"] == 0
    sales(spark, 300).write.mode("append").format("parquet").saveAsTable("t")
    assert "would cluster 3 new files" in described()["a"]["verdict"]
