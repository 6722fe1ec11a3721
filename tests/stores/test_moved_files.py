"""A query returns every row once even if OPTIMIZE moves files away after the query was planned or
while the query runs."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import DataFrame

from tests.stores.tables import ALL, Table
from tests.support import scans
from tests.support.folders import Folder
from tests.support.tables import ids

pytestmark = pytest.mark.stores

FORMATS = pytest.mark.parametrize("provider", ["parquet", "orc"])


def planned(df: DataFrame) -> DataFrame:
    """Plans the query, so its list of files can no longer change."""
    df._jdf.queryExecution().toRdd().getNumPartitions()
    return df


@FORMATS
@pytest.mark.parametrize("ignore", ["false", "true"])
def test_planned_before(folder: Folder, provider: str, ignore: str) -> None:
    table = Table(folder, provider)
    with scans.settings(folder.spark, spark__sql__files__ignoreMissingFiles=ignore):
        made, rows = table.rows(), planned(table.rows())
        table.optimize()
        assert sorted(row["id"] for row in rows.collect()) == ids(made) == ALL
        table.run("RESTORE {} TO BEFORE OPTIMIZE")
        assert sorted(row["id"] for row in rows.collect()) == ids(made) == ALL


@FORMATS
@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_taken_away_while_it_is_read(folder: Folder, provider: str, vectorized: str) -> None:
    """A query reads a file to its end even if the file is moved away after the first row has been
    read. The query reads one row group at a time."""
    spark, count = folder.spark, 40_000
    spark.range(0, count, 1, 1).selectExpr("id", "uuid() AS text").write.format(provider).options(
        **{"parquet.block.size": 200_000, "parquet.page.size.row.check.min": 100,
           "orc.stripe.size": 200_000, "orc.stripe.row.count": 5000},
    ).save(folder.url)  # fmt: skip
    pause = "CASE WHEN id = 0 THEN reflect('java.lang.Thread', 'sleep', 12000L) END AS pause"
    with scans.settings(
        spark,
        spark__sql__parquet__enableVectorizedReader=vectorized,
        spark__sql__orc__enableVectorizedReader=vectorized,
    ):
        rows = planned(spark.read.format(provider).load(folder.url).selectExpr("*", pause))
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(lambda: sorted(row["id"] for row in rows.collect()))
            time.sleep(3)
            spark.sql(f"OPTIMIZE {provider}.`{folder.url}` FULL ZORDER BY (id)")
            assert not reading.done()
            assert reading.result() == list(range(count))
