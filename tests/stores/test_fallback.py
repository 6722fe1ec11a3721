"""On any store, the fallback can copy tables, and its queries use the indexes of the copies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pyzorder import fallback
from pyzorder.errors import ZOrderError
from tests.support import scans
from tests.support.folders import Folder
from tests.support.tables import rows_of, sales


@pytest.fixture
def copy(spark: SparkSession, folder: Folder) -> Iterator[Folder]:
    """A folder for a copy. The folder does not exist yet."""
    made = Folder(spark, f"{folder.url}-z")
    yield made
    made.delete()


@pytest.mark.stores
def test_a_copy(spark: SparkSession, folder: Folder, copy: Folder) -> None:
    rows = sales(spark, 2000).withColumnRenamed("day", "a day")
    rows.write.partitionBy("a day").parquet(folder.url)
    files, size = folder.everything(), sum(size for size, _ in folder.everything().values())
    spark.sql("DROP TABLE IF EXISTS x")
    spark.sql(f"CREATE TABLE x USING parquet LOCATION '{folder.url}'")
    spark.sql("MSCK REPAIR TABLE x")
    before = rows_of(spark.table("x"))
    with scans.settings(spark, spark__sql__zorder__optimize__targetFileSize=f"{size // 9}b"):
        done = fallback.optimize(spark, "x", ["a", "b"], to=copy.url, switch_location=True)
    assert folder.everything() == files
    assert done.files == len(copy.data()) > 6 and done.is_switched
    assert rows_of(spark.table("x")) == before
    found = fallback.read(spark, "x")
    left_out = found.select_files("a = 77")
    assert len(left_out.skipped) >= done.files / 3
    by_jar = scans.opened(spark.sql("SELECT * FROM x WHERE a = 77"))
    assert len(by_jar) == done.files - len(left_out.skipped)
    with scans.plain(spark):
        assert found.where("a = 77").count() == spark.table("x").where("a = 77").count()
    with pytest.raises(ZOrderError, match="ZORDER_FALLBACK_TARGET.*not empty"):
        fallback.optimize(spark, folder.url, ["a"], to=copy.url)
    spark.sql("DROP TABLE x")
